/* raise() and kill() RAISES times with a handler that works, once more from inside a handler (nested), blocked and
 * pending ones, and siginfo. */
#include "work.h"
#include <signal.h>
#include <string.h>
#define RAISES 30
#define IN_HANDLER 50
#define INNER 70
#define BETWEEN 10
#define PENDING 5

static volatile int handled, inner;

static void on_usr1(int number, siginfo_t *info, void *context) {
    CHECK(number == SIGUSR1 && info->si_signo == SIGUSR1 && info->si_pid == getpid() && context != NULL);
    work(IN_HANDLER);
    handled++;
    raise(SIGUSR2);
}

static void on_usr2(int number) {
    CHECK(number == SIGUSR2);
    work(INNER);
    inner++;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_usr1, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
    signal(SIGUSR2, on_usr2);
    for (int i = 0; i < RAISES; i++) {
        work(BETWEEN);
        if (i % 2)
            raise(SIGUSR1);
        else
            kill(getpid(), SIGUSR1);
    }
    CHECK(handled == RAISES && inner == RAISES);

    sigset_t set, old, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    for (int i = 0; i < PENDING; i++) {
        sigprocmask(SIG_BLOCK, &set, &old);
        raise(SIGUSR2);
        sigpending(&pending);
        CHECK(sigismember(&pending, SIGUSR2) && inner == RAISES + i);
        sigprocmask(SIG_SETMASK, &old, NULL);
        CHECK(inner == RAISES + i + 1);
    }
    signal(SIGUSR2, SIG_IGN);
    raise(SIGUSR2);
    CHECK(inner == RAISES + PENDING);
    return 0;
}
