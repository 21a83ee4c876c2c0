/* AVX-512 only: rows of COLUMNS floats, whose last vector is masked to TAIL lanes; every row also does one fma under
 * a mask of no lane. */
#include "work.h"
#define ROWS 50
#define COLUMNS 37
#define TAIL 5
#define FULL_VECTORS 2

static float x[ROWS * COLUMNS + 16], y[ROWS * COLUMNS + 16];

int main(void) {
    _Static_assert(FULL_VECTORS * 16 + TAIL == COLUMNS, "sizes agree");
    vec two = _mm512_set1_ps(2.0f);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = (float)(i % 5);
    for (int row = 0; row < ROWS; row++) {
        float *from = x + row * COLUMNS, *to = y + row * COLUMNS;
        for (int c = 0; c < FULL_VECTORS * 16; c += 16)
            _mm512_storeu_ps(to + c, multiply_add(two, _mm512_loadu_ps(from + c), _mm512_setzero_ps()));
        __mmask16 tail = (1u << TAIL) - 1, none = 0;
        vec v = _mm512_maskz_loadu_ps(tail, from + FULL_VECTORS * 16), sum = _mm512_setzero_ps();
        __asm__ volatile("vfmadd231ps %2, %1, %0%{%3%}" : "+v"(sum) : "v"(two), "v"(v), "Yk"(tail));
        __asm__ volatile("vaddps %1, %1, %0%{%2%}%{z%}" : "+v"(v) : "v"(two), "Yk"(tail));
        __asm__ volatile("vmulps %1, %1, %0%{%2%}" : "+v"(sum) : "v"(two), "Yk"(none));
        _mm512_mask_storeu_ps(to + FULL_VECTORS * 16, tail, sum);
    }
    for (int i = 0; i < ROWS * COLUMNS; i++)
        CHECK(y[i] == (float)(2 * (i % 5)));
    return 0;
}
