/* The environment that a child gets: what the program set, unset and passed, and nothing else; on stdout, through sh
 * and env. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    setenv("SET_BY_PARENT", "yes", 1);
    unsetenv("HOME");
    fflush(stdout);
    if (fork() == 0)
        execlp("env", "env", (char *)NULL);
    wait(NULL);
    if (fork() == 0) {
        char *arguments[] = {"env", NULL}, *environment[] = {"ONLY=this", NULL};
        execve("/usr/bin/env", arguments, environment);
    }
    wait(NULL);
    if (fork() == 0) {
        clearenv();
        execl("/bin/sh", "sh", "-c", "/usr/bin/env; echo $0", (char *)NULL);
    }
    wait(NULL);
    return 0;
}
