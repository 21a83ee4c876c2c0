/* Ends by exit, called by a destructor-like handler while the others are still to run. */
#define _GNU_SOURCE
#include "work.h"
#define BEFORE 500
#define FIRST 30
#define SECOND 70

static void last(void) { work(SECOND); }
static void first(void) {
    work(FIRST);
    exit(6);
}

int main(void) {
    work(BEFORE);
    atexit(last);
    atexit(first);
    return 1;
}
