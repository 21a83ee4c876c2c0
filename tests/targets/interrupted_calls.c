/* read and nanosleep under a timer: EINTR without SA_RESTART, restarted with it; sigsuspend, sigtimedwait, poll and
 * signalfd answer as the kernel does. */
#define _GNU_SOURCE
#include "work.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <time.h>
#define IN_HANDLER 30
#define SIGNALS 6

static volatile int handled;
static int ends[2];

static void handler(int number) {
    (void)number;
    work(IN_HANDLER);
    if (++handled == 2)
        CHECK(write(ends[1], "x", 1) == 1); /* ends the read that is restarted */
}

static void soon(int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval once = {.it_value = {0, 30000}};
    setitimer(ITIMER_REAL, &once, NULL);
}

int main(void) {
    char byte;
    CHECK(pipe(ends) == 0);
    soon(0);
    CHECK(read(ends[0], &byte, 1) == -1 && errno == EINTR && handled == 1);
    soon(SA_RESTART);
    CHECK(read(ends[0], &byte, 1) == 1 && byte == 'x' && handled == 2);
    soon(SA_RESTART);
    struct timespec second = {1, 0}, left = {0, 0};
    CHECK(nanosleep(&second, &left) == -1 && errno == EINTR && left.tv_sec == 0 && left.tv_nsec > 500000000 && handled == 3);
    soon(SA_RESTART);
    struct pollfd waits = {.fd = ends[0], .events = POLLIN};
    CHECK(poll(&waits, 1, 2000) == -1 && errno == EINTR && handled == 4);

    sigset_t blocked, old, none;
    sigemptyset(&blocked);
    sigemptyset(&none);
    sigaddset(&blocked, SIGALRM);
    sigprocmask(SIG_BLOCK, &blocked, &old);
    soon(0);
    CHECK(sigsuspend(&none) == -1 && errno == EINTR && handled == 5);
    raise(SIGALRM);
    CHECK(handled == 5);
    siginfo_t info;
    CHECK(sigtimedwait(&blocked, &info, &second) == SIGALRM && handled == 5);
    int descriptor = signalfd(-1, &blocked, 0);
    raise(SIGALRM);
    struct signalfd_siginfo told;
    CHECK(read(descriptor, &told, sizeof told) == sizeof told && told.ssi_signo == SIGALRM && handled == 5);
    raise(SIGALRM);
    sigprocmask(SIG_SETMASK, &old, NULL);
    CHECK(handled == SIGNALS);
    return 0;
}
