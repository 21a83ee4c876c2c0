/* A clamp of N floats: one max and one min a vector; compares, blends and conversions beside it count nothing. */
#include "work.h"
#define N 2048
#define REPEAT 4

static float x[N];
static int whole[N];

int main(void) {
    for (int r = 0; r < REPEAT; r++) {
        for (int i = 0; i < N; i++)
            x[i] = (float)(i % 16) ;
        for (int i = 0; i < N; i += LANES) {
            vec low = V(set1_ps)(3.0f), high = V(set1_ps)(9.0f), v = V(loadu_ps)(x + i);
            __asm__ volatile("" : "+x"(low), "+x"(high), "+x"(v));
            V(storeu_ps)(x + i, V(min_ps)(V(max_ps)(v, low), high));
        }
        for (int i = 0; i < N; i++) {
            whole[i] = (int)x[i];
            int raw = i % 16;
            CHECK(whole[i] == (raw < 3 ? 3 : raw > 9 ? 9 : raw));
        }
    }
    return 0;
}
