/* Children of all kinds under a timer of 1 kHz and beside a busy thread: their signal masks and their parent's handlers stay right. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int stop, ticks, hups;

static void tick(int signal) {
    volatile double x = 1;
    (void)signal;
    for (int i = 0; i < 9; i++)
        x *= 1.1;
    ticks++;
}

static void hup(int signal) { hups += signal == SIGHUP; }

static void *spin(void *unused) {
    volatile double x = 1;
    while (!stop)
        x = x * 1.0001 + 1e-3;
    return unused;
}

static int wait_for_one(void) {
    int status;
    while (wait(&status) < 0 && errno == EINTR)
        ;
    return status;
}

static int anything_blocked(void) {
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    int found = 0;
    for (int s = 1; s < 32; s++)
        found |= sigismember(&mask, s) == 1;
    return found;
}

int main(void) {
    struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    pthread_t busy;
    volatile int forked = 0, executed = 0, masks = 0;
    sigaction(SIGALRM, &action, NULL);
    signal(SIGHUP, hup);
    setitimer(ITIMER_REAL, &often, NULL);
    pthread_create(&busy, NULL, spin, NULL);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (!child)
            _exit(anything_blocked() ? 99 : i % 7);
        forked += wait_for_one() == (i % 7) << 8;
    }
    for (int i = 0; i < 10; i++) {
        pid_t child = vfork();
        if (!child) {
            signal(SIGHUP, SIG_DFL); /* of the child alone, though it shares memory */
            execl("/bin/true", "true", (char *)NULL);
            _exit(9);
        }
        executed += wait_for_one() == 0;
    }
    for (int i = 0; i < 5; i++) {
        FILE *status = popen("grep SigBlk: /proc/self/status", "r");
        char line[100];
        while (fgets(line, sizeof line, status))
            masks += strcmp(line, "SigBlk:\t0000000000000000\n") == 0;
        pclose(status);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    raise(SIGHUP);
    stop = 1;
    pthread_join(busy, NULL);
    printf("%d %d %d %d %d\n", forked, executed, masks, hups, ticks > 5);
    return 0;
}
