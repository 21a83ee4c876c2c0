/* Integer vectors: adds, multiplies and compares of bytes to quadwords are no floating-point operations. */
#include "work.h"
#define N 1000

int main(void) {
    __m128i sum = _mm_setzero_si128(), one = _mm_set1_epi32(1);
    for (int i = 0; i < N; i++) {
        __asm__ volatile("paddd %1, %0" : "+x"(sum) : "x"(one));
        __asm__ volatile("pmullw %0, %0\n\tpsrld $0, %0" : : "x"(one));
    }
    CHECK(_mm_cvtsi128_si32(sum) == N);
    return 0;
}
