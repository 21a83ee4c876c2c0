/* Ends by _exit: no exit handler runs. */
#define _GNU_SOURCE
#include "work.h"
#define BEFORE 500

__attribute__((destructor)) static void never(void) { work(BEFORE); }

int main(void) {
    work(BEFORE);
    _exit(9);
}
