/* The sum of N floats, first by one scalar chain, then by vectors and a tree of halves. */
#include "work.h"
#define N 4096
#define REPEAT 3

static float x[N];

static NOINLINE float scalar_sum(void) {
    float total = 0.0f;
    for (int i = 0; i < N; i++)
        total += x[i];
    return total;
}

static NOINLINE float vector_sum(void) {
    vec sum = V(setzero_ps)();
    for (int i = 0; i < N; i += LANES)
        sum = V(add_ps)(sum, V(loadu_ps)(x + i));
    float lanes[LANES];
    V(storeu_ps)(lanes, sum);
    for (int half = LANES / 2; half >= 1; half /= 2)
        for (int i = 0; i < half; i++)
            __asm__ volatile("addss %1, %0" : "+x"(lanes[i]) : "m"(lanes[i + half]));
    return lanes[0];
}

int main(void) {
    for (int i = 0; i < N; i++)
        x[i] = 1.0f;
    for (int r = 0; r < REPEAT; r++) {
        CHECK(scalar_sum() == (float)N);
        CHECK(vector_sum() == (float)N);
    }
    return 0;
}
