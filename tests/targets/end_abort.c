/* Ends by abort. */
#define _GNU_SOURCE
#include "work.h"
#define BEFORE 500

int main(void) {
    work(BEFORE);
    abort();
}
