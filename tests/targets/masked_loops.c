/* AVX-512 only: the mask changes with every run of the same instruction: 0, 1, 2 ... 15 lanes, ROUNDS times over;
 * also at 256 and 128 bits, in double precision and as a masked scalar. */
#include "work.h"
#define ROUNDS 20
#define LANES_OF_A_ROUND 120

int main(void) {
    vec one = _mm512_set1_ps(1.0f), sum = _mm512_setzero_ps();
    __m256 sum256 = _mm256_setzero_ps();
    __m512d one64 = _mm512_set1_pd(1.0), sum64 = _mm512_setzero_pd();
    __m128 scalar = _mm_setzero_ps();
    for (int r = 0; r < ROUNDS; r++)
        for (int lanes = 0; lanes < 16; lanes++) {
            __mmask16 k = (__mmask16)((1u << lanes) - 1);
            __asm__ volatile("vaddps %1, %0, %0%{%2%}" : "+v"(sum) : "v"(one), "Yk"(k));
            /* only the low 8 mask bits matter to these two, and only the lowest to the last */
            __asm__ volatile("vaddps %1, %0, %0%{%2%}" : "+v"(sum256) : "v"(_mm512_castps512_ps256(one)), "Yk"(k));
            __asm__ volatile("vaddpd %1, %0, %0%{%2%}" : "+v"(sum64) : "v"(one64), "Yk"(k));
            __asm__ volatile("vaddss %1, %0, %0%{%2%}" : "+v"(scalar) : "v"(_mm512_castps512_ps128(one)), "Yk"(k));
        }
    float got[16], got256[8];
    double got64[8];
    _mm512_storeu_ps(got, sum);
    _mm256_storeu_ps(got256, sum256);
    _mm512_storeu_pd(got64, sum64);
    for (int i = 0; i < 16; i++)
        CHECK(got[i] == (float)(ROUNDS * (15 - i)));
    for (int i = 0; i < 8; i++)
        CHECK(got256[i] == (float)(ROUNDS * (15 - i)) && got64[i] == ROUNDS * (15 - i));
    CHECK(_mm_cvtss_f32(scalar) == ROUNDS * 15);
    return 0;
}
