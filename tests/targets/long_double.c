/* x87: N additions, N multiplications, N subtractions, N divisions and N square roots in long double. */
#include "work.h"
#define N 500

static NOINLINE long double chain(long double value) {
    for (int i = 0; i < N; i++) {
        long double one = 1.0L, two = 2.0L;
        __asm__ volatile("faddp" : "=t"(value) : "0"(value), "u"(one) : "st(1)");
        __asm__ volatile("fmulp" : "=t"(value) : "0"(value), "u"(two) : "st(1)");
        __asm__ volatile("fsubrp" : "=t"(value) : "0"(value), "u"(one) : "st(1)");
        __asm__ volatile("fdivp" : "=t"(value) : "0"(value), "u"(one) : "st(1)");
        __asm__ volatile("fabs\n\tfsqrt" : "+t"(value));
    }
    return value;
}

int main(void) {
    volatile long double start = 4.0L;
    CHECK(chain(start) > 0.0L);
    return 0;
}
