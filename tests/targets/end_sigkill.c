/* Ends by SIGKILL, sent by itself. */
#define _GNU_SOURCE
#include "work.h"
#include <signal.h>
#define BEFORE 500

int main(void) {
    work(BEFORE);
    kill(getpid(), SIGKILL);
    pause();
    return 0;
}
