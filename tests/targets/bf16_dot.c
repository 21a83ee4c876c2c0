/* AVX512-BF16: N dot-product instructions of 16 pairs each (4 floating-point operations a pair sum). */
#include "work.h"
#define N 300

int main(void) {
    vec sum = _mm512_setzero_ps();
    __m512i ones = _mm512_set1_epi16(0x3f80);
    for (int i = 0; i < N; i++)
        __asm__ volatile("vdpbf16ps %1, %1, %0" : "+v"(sum) : "v"(ones));
    float lanes[16];
    _mm512_storeu_ps(lanes, sum);
    for (int i = 0; i < 16; i++)
        CHECK(lanes[i] == (float)(2 * N));
    return 0;
}
