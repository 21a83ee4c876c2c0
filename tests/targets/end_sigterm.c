/* Ends by SIGTERM, sent by itself and not handled. */
#define _GNU_SOURCE
#include "work.h"
#include <signal.h>
#define BEFORE 500

int main(void) {
    work(BEFORE);
    raise(SIGTERM);
    return 0;
}
