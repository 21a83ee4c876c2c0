/* Double precision: a vector axpy over N doubles, and a scalar Horner polynomial of degree DEGREE at POINTS points. */
#include "work.h"
#define N 1024
#define REPEAT 4
#define POINTS 30
#define DEGREE 9

static double x[N], y[N];

static NOINLINE double horner(double at) {
    double value = 1.0;
    for (int i = 0; i < DEGREE; i++) {
        double one = 1.0;
        __asm__ volatile("mulsd %1, %0\n\taddsd %2, %0" : "+x"(value) : "x"(at), "x"(one));
    }
    return value;
}

int main(void) {
    vec64 factor = V(set1_pd)(2.0);
    for (int i = 0; i < N; i++)
        x[i] = i;
    for (int r = 0; r < REPEAT; r++)
        for (int i = 0; i < N; i += LANES / 2) {
            vec64 a = V(loadu_pd)(x + i), c = V(loadu_pd)(y + i);
#if HAVE_FMA
            __asm__ volatile("vfmadd231pd %2, %1, %0" : "+v"(c) : "v"(a), "v"(factor));
#else
            __asm__ volatile("mulpd %1, %0" : "+x"(a) : "x"(factor));
            __asm__ volatile("addpd %1, %0" : "+x"(c) : "x"(a));
#endif
            V(storeu_pd)(y + i, c);
        }
    for (int i = 0; i < N; i++)
        CHECK(y[i] == (double)(2 * REPEAT * i));
    for (int i = 0; i < POINTS; i++)
        CHECK(horner(1.0) == DEGREE + 1);
    return 0;
}
