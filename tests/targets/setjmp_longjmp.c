/* JUMPS long jumps out of DEPTH frames, with work before each jump and after each landing. */
#include "work.h"
#include <setjmp.h>
#define JUMPS 40
#define DEPTH 5
#define DOWN 10
#define LANDED 20

static jmp_buf place;

static NOINLINE int descend(int depth) {
    work(DOWN);
    if (depth == 1)
        longjmp(place, DEPTH);
    return depth < 1 ? 0 : descend(depth - 1) + 1; /* the addition keeps the call from becoming a jump */
}

int main(void) {
    for (volatile int i = 0; i < JUMPS; i++) {
        int value = setjmp(place);
        if (value == 0)
            descend(DEPTH);
        CHECK(value == DEPTH);
        work(LANDED);
    }
    return 0;
}
