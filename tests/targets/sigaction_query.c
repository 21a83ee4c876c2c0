/* sigaction and sigprocmask answer with what the program itself has set, for every signal; SA_RESETHAND and
 * SA_NODEFER do as they say. */
#define _GNU_SOURCE
#include "work.h"
#include <signal.h>
#include <string.h>
#define STEPS 30
#define NESTED 3

static volatile int depth, deepest;

static void plain(int number) { (void)number; }
static void detailed(int number, siginfo_t *info, void *context) { (void)number, (void)info, (void)context; }

static void nesting(int number) {
    struct sigaction now;
    sigaction(number, NULL, &now);
    CHECK(now.sa_handler == nesting);
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    CHECK(!sigismember(&mask, number) && sigismember(&mask, SIGUSR2));
    work(STEPS);
    depth++;
    if (depth > deepest)
        deepest = depth;
    if (depth < NESTED)
        raise(number);
    depth--;
}

static void once(int number) {
    struct sigaction now;
    sigaction(number, NULL, &now);
    CHECK(now.sa_handler == SIG_DFL);
    work(STEPS);
}

int main(void) {
    struct sigaction old, action;
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int number = 1; number < NSIG; number++) {
        if (number == SIGKILL || number == SIGSTOP) {
            CHECK(signal(number, plain) == SIG_ERR);
            continue;
        }
        if (sigaction(number, NULL, &old) != 0)
            continue; /* the two that libc keeps for itself */
        CHECK(old.sa_handler == SIG_DFL || old.sa_handler == SIG_IGN);
        CHECK(!sigismember(&mask, number));
        memset(&action, 0, sizeof action);
        if (number % 2) {
            action.sa_handler = plain;
            action.sa_flags = SA_RESTART;
            sigaddset(&action.sa_mask, SIGHUP);
        } else {
            action.sa_sigaction = detailed;
            action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        }
        CHECK(sigaction(number, &action, NULL) == 0);
        struct sigaction before = old;
        CHECK(sigaction(number, &before, &old) == 0);
        CHECK(number % 2 ? old.sa_handler == plain : old.sa_sigaction == detailed);
        CHECK((old.sa_flags & ~0x04000000) == action.sa_flags); /* 0x04000000: SA_RESTORER, which libc adds */
        CHECK(!sigismember(&old.sa_mask, SIGHUP) == !sigismember(&action.sa_mask, SIGHUP));
    }
    sigfillset(&mask);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    sigprocmask(SIG_SETMASK, NULL, &mask);
    CHECK(sigismember(&mask, SIGSEGV) && sigismember(&mask, SIGRTMAX) && !sigismember(&mask, SIGKILL));
    sigemptyset(&mask);
    sigprocmask(SIG_SETMASK, &mask, NULL);

    memset(&action, 0, sizeof action);
    action.sa_handler = nesting;
    action.sa_flags = SA_NODEFER;
    sigaddset(&action.sa_mask, SIGUSR2);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    CHECK(deepest == NESTED);

    memset(&action, 0, sizeof action);
    action.sa_handler = once;
    action.sa_flags = SA_RESETHAND;
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    CHECK(sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_handler == SIG_DFL);
    return 0;
}
