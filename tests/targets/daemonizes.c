/* Changes its directory, its root-relative names and its session, forks and lets the parent go: the daemon's work is
 * waited for through a pipe and counted. */
#define _GNU_SOURCE
#include "work.h"
#include <sys/stat.h>
#define FOREGROUND 100
#define DAEMON 200

int main(void) {
    int ends[2];
    char byte;
    CHECK(pipe(ends) == 0);
    if (fork() == 0) {
        setsid();
        umask(077);
        CHECK(chdir("/") == 0);
        close(ends[0]);
        if (fork() == 0) {
            work(DAEMON);
            CHECK(write(ends[1], "x", 1) == 1);
            _exit(0);
        }
        _exit(0);
    }
    close(ends[1]);
    work(FOREGROUND);
    CHECK(read(ends[0], &byte, 1) == 1);
    CHECK(read(ends[0], &byte, 1) == 0); /* the daemon is gone */
    return 0;
}
