/* What a program can see of how it was started, on stdout: arguments, environment, descriptors, signals, limits,
 * children. The test compares it with a run without counting. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv) {
    for (int i = 0; i <= argc; i++)
        printf("argument %d: %s\n", i, argv[i] ? argv[i] : "(null)");
    for (char **entry = environ; *entry; entry++)
        printf("environment: %s\n", *entry);
    printf("LD_PRELOAD: %s\n", getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "(unset)");
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    printf("program: %s, directory: %s, name: %s\n", path, getcwd(NULL, 0), program_invocation_short_name);
    char name[16];
    prctl(PR_GET_NAME, name);
    printf("task name: %s, dumpable: %d\n", name, prctl(PR_GET_DUMPABLE));
    int lowest = open("/dev/null", O_RDONLY);
    printf("lowest free descriptor: %d\n", lowest);
    close(lowest);
    DIR *directory = opendir("/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(directory));)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(directory))
            printf("descriptor %s\n", entry->d_name);
    closedir(directory);
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0 && (action.sa_handler != SIG_DFL || sigismember(&mask, number)))
            printf("signal %d: %s, blocked %d\n", number, action.sa_handler == SIG_IGN ? "ignored" : "handled", sigismember(&mask, number));
    }
    stack_t stack;
    sigaltstack(NULL, &stack);
    printf("alternate stack: %s\n", stack.ss_flags == SS_DISABLE ? "none" : "set");
    for (int limit = 0; limit < RLIM_NLIMITS; limit++) {
        struct rlimit value;
        getrlimit(limit, &value);
        printf("limit %d: %lu %lu\n", limit, (unsigned long)value.rlim_cur, (unsigned long)value.rlim_max);
    }
    mode_t mode = umask(0);
    printf("umask %o, own group %d, nice %d, secure %lu\n", mode, getpgid(0) == getpgid(getppid()), nice(0), getauxval(AT_SECURE));
    int status;
    pid_t child = waitpid(-1, &status, WNOHANG);
    printf("children: %s\n", child == -1 && errno == ECHILD ? "none" : "some");
    int threads = 0;
    directory = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(directory));)
        threads += entry->d_name[0] != '.';
    closedir(directory);
    printf("threads: %d\n", threads);
    return 0;
}
