/* Closes every descriptor from 3 up, as daemons do, then closes the standard ones too, and works on, in itself and
 * in a child. */
#define _GNU_SOURCE
#include "work.h"
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#define BEFORE 100
#define AFTER 200
#define CHILD 400

int main(void) {
    work(BEFORE);
    for (int i = 3; i < 1024; i++)
        close(i);
    syscall(436, 3, ~0U, 0); /* close_range */
    CHECK(open("/dev/null", O_RDONLY) == 3);
    for (int i = 0; i < 3; i++)
        close(i);
    pid_t child = fork();
    if (child == 0) {
        work(CHILD);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    work(AFTER);
    _exit(status ? 1 : 11);
}
