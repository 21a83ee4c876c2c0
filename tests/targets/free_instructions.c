/* Moves, compares, conversions, logic, shuffles and roundings of floating-point registers: none of them is an
 * operation. */
#include "work.h"
#define N 1000

int main(void) {
    float a = 1.5f, b = 2.5f;
    vec v = V(set1_ps)(1.5f);
    int hits = 0;
    for (int i = 0; i < N; i++) {
        int whole;
        double wide;
        __asm__ volatile("ucomiss %1, %2\n\tcvttss2si %1, %0" : "=r"(whole) : "x"(a), "x"(b) : "cc");
        __asm__ volatile("cvtss2sd %1, %0\n\tandpd %0, %0\n\tshufpd $1, %0, %0\n\tshufpd $1, %0, %0" : "=x"(wide) : "x"(a));
        __asm__ volatile("" : "+x"(v));
        v = V(shuffle_ps)(v, v, 0x1b);
        hits += whole == 1 && wide == 1.5 && b > a;
    }
    CHECK(hits == N);
    return 0;
}
