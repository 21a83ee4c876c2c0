/* N divisions and N square roots in vectors, then SCALARS of each in scalar form, single and double. */
#include "work.h"
#define N 2048
#define SCALARS 100

static float x[N];

int main(void) {
    for (int i = 0; i < N; i++)
        x[i] = 16.0f;
    vec four = V(set1_ps)(4.0f);
    for (int i = 0; i < N; i += LANES) {
        vec v = V(loadu_ps)(x + i);
        __asm__ volatile("" : "+x"(v), "+x"(four));
        V(storeu_ps)(x + i, V(div_ps)(V(sqrt_ps)(v), four));
    }
    for (int i = 0; i < N; i++)
        CHECK(x[i] == 1.0f);
    for (int i = 0; i < SCALARS; i++) {
        float f = 9.0f, three = 3.0f;
        double d = 81.0, nine = 9.0;
        __asm__ volatile("sqrtss %0, %0\n\tdivss %1, %0" : "+x"(f) : "x"(three));
        __asm__ volatile("sqrtsd %0, %0\n\tdivsd %1, %0" : "+x"(d) : "x"(nine));
        CHECK(f == 1.0f && d == 1.0);
    }
    return 0;
}
