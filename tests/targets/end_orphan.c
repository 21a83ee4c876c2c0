/* The parent ends first; its child works on as an orphan, and is still counted (the parent's pipe keeps the caller waiting). */
#include "work.h"
#include <time.h>
#define PARENT 100
#define ORPHAN 200

int main(void) {
    pid_t parent = getpid();
    if (fork() == 0) {
        while (getppid() == parent)
            usleep(1000);
        work(ORPHAN);
        return 0;
    }
    work(PARENT);
    return 2;
}
