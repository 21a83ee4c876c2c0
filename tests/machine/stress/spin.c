/* A signal that arrives just when a system call ends must not wait for the next one: the program spins without any. */
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t flag;

static void set(int signal) { flag = signal; }

int main(void) {
    signal(SIGALRM, set);
    int n = 0;
    for (int i = 0; i < 4000; i++) {
        struct itimerval soon = {{0, 0}, {0, 1 + i % 60}};
        flag = 0;
        setitimer(ITIMER_REAL, &soon, NULL);
        for (int k = 0; k < i % 40; k++)
            syscall(SYS_getppid);
        while (!flag)
            ;
        n++;
    }
    printf("%d\n", n);
    return 0;
}
