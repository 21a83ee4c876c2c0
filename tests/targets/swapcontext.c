/* Two coroutines on stacks of their own, switching SWITCHES times by swapcontext; the floating-point control words
 * travel with them. */
#include "work.h"
#include <ucontext.h>
#define SWITCHES 30
#define STEPS 25

static ucontext_t back, first, second;
static int turns[2];

static void coroutine(int number) {
    for (int i = 0; i < SWITCHES; i++) {
        work(STEPS);
        turns[number]++;
        swapcontext(number ? &second : &first, number ? &first : &second);
    }
}

int main(void) {
    static char stack1[65536] __attribute__((aligned(64))), stack2[65536] __attribute__((aligned(64)));
    getcontext(&first);
    first.uc_stack.ss_sp = stack1;
    first.uc_stack.ss_size = sizeof stack1;
    first.uc_link = &back;
    makecontext(&first, (void (*)(void))coroutine, 1, 0);
    getcontext(&second);
    second.uc_stack.ss_sp = stack2;
    second.uc_stack.ss_size = sizeof stack2;
    second.uc_link = &back;
    makecontext(&second, (void (*)(void))coroutine, 1, 1);
    swapcontext(&back, &first);
    CHECK(turns[0] == SWITCHES && turns[1] == SWITCHES);
    return 0;
}
