/* x87 with operands in memory (float, double, 16 and 32-bit integers), and a compiler's own long double sum. */
#include "work.h"
#define N 200

static long double numbers[N];

static NOINLINE long double sum(void) {
    long double total = 0.0L;
    for (int i = 0; i < N; i++)
        total += numbers[i];
    return total;
}

int main(void) {
    float f = 2.0f;
    double d = 3.0;
    short s = 4;
    int w = 5;
    long double value = 1.0L;
    for (int i = 0; i < N; i++)
        __asm__ volatile("fadds %1\n\tfmull %2\n\tfiadds %3\n\tfidivl %4" : "+t"(value) : "m"(f), "m"(d), "m"(s), "m"(w));
    CHECK(value > 3.0L && value < 6.0L);
    for (int i = 0; i < N; i++)
        numbers[i] = (long double)i;
    CHECK(sum() == (long double)(N * (N - 1) / 2));
    return 0;
}
