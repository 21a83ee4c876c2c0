/* Work before the fork, in the child, in the grandchild (which leaves by _exit) and in the parent afterwards. */
#include "work.h"
#include <sys/wait.h>
#define BEFORE 100
#define CHILD 200
#define GRANDCHILD 400
#define AFTER 800

int main(void) {
    work(BEFORE);
    pid_t child = fork();
    if (child == 0) {
        if (fork() == 0) {
            work(GRANDCHILD);
            _exit(7);
        }
        int status;
        wait(&status);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        work(CHILD);
        return 5;
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
    work(AFTER);
    return 0;
}
