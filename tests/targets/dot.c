/* The dot product of two vectors of N floats, REPEAT times; the LANES partial sums are added one by one. */
#include "work.h"
#define N 4096
#define REPEAT 5

static float x[N], y[N];

static NOINLINE float dot(void) {
    vec sum = V(setzero_ps)();
    for (int i = 0; i < N; i += LANES)
        sum = multiply_add(V(loadu_ps)(x + i), V(loadu_ps)(y + i), sum);
    float lanes[LANES], total = 0.0f;
    V(storeu_ps)(lanes, sum);
    for (int i = 0; i < LANES; i++)
        __asm__ volatile("addss %1, %0" : "+x"(total) : "m"(lanes[i]));
    return total;
}

int main(void) {
    for (int i = 0; i < N; i++)
        x[i] = y[i] = (float)(i % 2);
    for (int r = 0; r < REPEAT; r++)
        CHECK(dot() == (float)(N / 2));
    return 0;
}
