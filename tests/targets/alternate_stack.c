/* Handlers on an alternate stack: while the main stack is exhausted by recursion (jumping out), and by raise;
 * SS_ONSTACK and SS_AUTODISARM are what the kernel says. */
#define _GNU_SOURCE
#include "work.h"
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#define RAISES 10
#define OVERFLOWS 3
#define IN_HANDLER 25

static char stack[131072];
static sigjmp_buf place;
static volatile int on_stack;

static void handler(int number) {
    char local;
    on_stack = &local >= stack && &local < stack + sizeof stack;
    stack_t now;
    sigaltstack(NULL, &now);
    CHECK(now.ss_sp == (void *)stack && now.ss_size == sizeof stack && now.ss_flags == SS_ONSTACK);
    work(IN_HANDLER);
    if (number == SIGSEGV)
        siglongjmp(place, 1);
}

static NOINLINE int endless(int depth) {
    volatile char frame[4096];
    frame[0] = (char)depth;
    return depth < 0 ? 0 : endless(depth + 1) + frame[0];
}

int main(void) {
    struct rlimit limit = {1 << 20, 1 << 20};
    setrlimit(RLIMIT_STACK, &limit);
    stack_t set = {.ss_sp = stack, .ss_size = sizeof stack}, old;
    CHECK(sigaltstack(NULL, &old) == 0 && old.ss_flags == SS_DISABLE);
    CHECK(sigaltstack(&set, NULL) == 0);
    CHECK(sigaltstack(NULL, &old) == 0 && old.ss_sp == (void *)stack && old.ss_flags == 0);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    for (int i = 0; i < RAISES; i++) {
        on_stack = 0;
        raise(SIGUSR1);
        CHECK(on_stack);
    }
    for (volatile int i = 0; i < OVERFLOWS; i++) {
        on_stack = 0;
        if (sigsetjmp(place, 1) == 0)
            _exit(endless(0));
        CHECK(on_stack);
    }
    return 0;
}
