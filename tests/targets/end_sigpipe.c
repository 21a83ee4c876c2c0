/* Ends by SIGPIPE, from a write that nobody reads. */
#define _GNU_SOURCE
#include "work.h"
#define BEFORE 500

int main(void) {
    work(BEFORE);
    int ends[2];
    CHECK(pipe(ends) == 0);
    close(ends[0]);
    CHECK(write(ends[1], "x", 1) == 1);
    return 0;
}
