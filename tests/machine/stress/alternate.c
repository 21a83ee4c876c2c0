/* Two kinds of signals on an alternate stack, at a rate that meets the engine again and again; and the way out of an overflow. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

static volatile long alarms, users;
static volatile char sink;
static sigjmp_buf back;

static void handler(int signal) {
    volatile char pad[256];
    for (int i = 0; i < 256; i++)
        pad[i] = (char)signal;
    *(signal == SIGALRM ? &alarms : &users) += 1;
    for (int i = 0; i < 3; i++)
        getppid();
    for (int i = 0; i < 256; i++)
        if (pad[i] != signal)
            abort();
}

static void overflowed(int signal) { siglongjmp(back, signal); }

__attribute__((noinline)) static int deep(int k) {
    volatile char big[4096];
    big[k % 4096] = (char)k;
    sink = big[0];
    return k < 0 ? 0 : deep(k + 1) + big[0];
}

int main(void) {
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART};
    struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    volatile int overflows = 0;
    sigaltstack(&stack, NULL);
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = overflowed;
    sigaction(SIGSEGV, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 60000; i++) {
        if (i % 3 == 0)
            raise(SIGUSR1);
        getppid();
    }
    setitimer(ITIMER_REAL, &never, NULL);
    for (volatile int i = 0; i < 3; i++)
        if (sigsetjmp(back, 1) == 0)
            deep(0);
        else
            overflows++;
    sigaltstack(NULL, &stack);
    printf("%d %ld %d %d %zu\n", alarms > 10, users, overflows, stack.ss_flags, stack.ss_size);
    return 0;
}
