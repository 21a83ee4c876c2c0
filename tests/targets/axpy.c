/* y = a * x + y over N floats, REPEAT times. */
#include "work.h"
#define N 4096
#define REPEAT 5

static float x[N], y[N];

static NOINLINE void axpy(float a) {
    vec factor = V(set1_ps)(a);
    for (int i = 0; i < N; i += LANES)
        V(storeu_ps)(y + i, multiply_add(factor, V(loadu_ps)(x + i), V(loadu_ps)(y + i)));
}

int main(void) {
    for (int i = 0; i < N; i++)
        x[i] = (float)(i % 7);
    for (int r = 0; r < REPEAT; r++)
        axpy(3.0f);
    for (int i = 0; i < N; i++)
        CHECK(y[i] == (float)(3 * REPEAT * (i % 7)));
    return 0;
}
