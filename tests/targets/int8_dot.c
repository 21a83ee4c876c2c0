/* AVX512-VNNI: N vpdpbusd of 64 byte products each: integer operations, no floating-point ones. */
#include "work.h"
#define N 300

int main(void) {
    __m512i sum = _mm512_setzero_si512(), ones = _mm512_set1_epi8(1);
    for (int i = 0; i < N; i++)
        __asm__ volatile("vpdpbusd %1, %1, %0" : "+v"(sum) : "v"(ones));
    int lanes[16];
    _mm512_storeu_si512(lanes, sum);
    for (int i = 0; i < 16; i++)
        CHECK(lanes[i] == 4 * N);
    return 0;
}
