/* Ends by quick_exit, whose own handlers do run. */
#define _GNU_SOURCE
#include "work.h"
#define BEFORE 500
#define IN_HANDLER 60

static void handler(void) { work(IN_HANDLER); }

int main(void) {
    work(BEFORE);
    at_quick_exit(handler);
    quick_exit(8);
}
