/* Children by the system calls themselves: clone with only a signal, vfork's clone sharing memory, and a forked
 * child that forks again and dies by a signal. */
#define _GNU_SOURCE
#include "work.h"
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#define BY_SYSCALL 100
#define BY_CLONE 200
#define KILLED 400
#define PARENT 800

static int cloned(void *unused) {
    (void)unused;
    work(BY_CLONE);
    return 4;
}

int main(void) {
    int status;
    long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        work(BY_SYSCALL);
        _exit(3);
    }
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);

    size_t size = 256 * 1024;
    char *stack = aligned_alloc(4096, size);
    child = clone(cloned, stack + size, SIGCHLD, NULL);
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 4);

    child = clone(cloned, stack + size, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 4);

    child = fork();
    if (child == 0) {
        work(KILLED);
        kill(getpid(), SIGKILL);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    work(PARENT);
    return 0;
}
