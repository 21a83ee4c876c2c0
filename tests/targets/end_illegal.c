/* Ends by an instruction that does not exist. */
#define _GNU_SOURCE
#include "work.h"
#define BEFORE 500

int main(void) {
    work(BEFORE);
    __asm__ volatile("ud2");
}
