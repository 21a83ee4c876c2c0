/* Recursion DEPTH deep, far beyond what any return-address cache holds, and mutual recursion; each frame adds on the
 * way down and on the way up. */
#include "work.h"
#define DEPTH 50000

static __m128 sum;
static NOINLINE long odd(long depth);

static NOINLINE long even(long depth) {
    __asm__ volatile("addps %0, %0" : "+x"(sum));
    long result = depth == 0 ? 0 : odd(depth - 1) + 1;
    __asm__ volatile("mulps %0, %0" : "+x"(sum));
    return result;
}

static NOINLINE long odd(long depth) { return even(depth - 1) + 1; }

int main(void) {
    CHECK(even(DEPTH) == DEPTH);
    return 0;
}
