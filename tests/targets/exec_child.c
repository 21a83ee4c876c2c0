/* Starts itself again in five ways (fork + execv, vfork + execve with an empty environment, posix_spawn, fexecve,
 * and system), then becomes another program for good. */
#define _GNU_SOURCE
#include "work.h"
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#define BEFORE 10
#define BY_FORK 100
#define BY_VFORK 200
#define BY_SPAWN 400
#define BY_FEXECVE 800
#define BY_SYSTEM 1600
#define LAST 3200

extern char **environ;

static void await(pid_t child) {
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

/* the number behind a name, as a string */
#define TEXT_OF(number) #number
#define TEXT(name) TEXT_OF(name)

int main(int argc, char **argv) {
    if (argc > 1) {
        work(atol(argv[1]));
        return 3;
    }
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    CHECK(length > 0);
    self[length] = 0;
    work(BEFORE);

    char *by_fork[] = {self, TEXT(BY_FORK), NULL}, *by_vfork[] = {self, TEXT(BY_VFORK), NULL}, *by_spawn[] = {self, TEXT(BY_SPAWN), NULL};
    char *by_fexecve[] = {self, TEXT(BY_FEXECVE), NULL}, *last[] = {self, TEXT(LAST), NULL}, *nothing[] = {NULL};
    pid_t child = fork();
    if (child == 0)
        execv(self, by_fork), _exit(98);
    await(child);

    child = vfork();
    if (child == 0)
        execve(self, by_vfork, nothing), _exit(98);
    await(child);

    CHECK(posix_spawn(&child, self, NULL, NULL, by_spawn, environ) == 0);
    await(child);

    child = fork();
    if (child == 0) {
        fexecve(open(self, O_RDONLY | O_CLOEXEC), by_fexecve, environ);
        _exit(98);
    }
    await(child);

    char command[5000];
    snprintf(command, sizeof command, "'%s' " TEXT(BY_SYSTEM), self);
    int status = system(command);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);

    child = vfork();
    if (child == 0) {
        execl("/no/such/program", "program", (char *)NULL);
        _exit(97);
    }
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 97);

    CHECK(execve("/no/such/program", last, environ) == -1);
    execve(self, last, environ);
    return 96;
}
