/* Code made at run time, in five ways: written into a fresh page and made executable; rewritten in place in a
 * writable and executable page, as a whole and by one byte; rewritten between two mprotects; and mapped anew at the
 * same address. Each version runs its own number of rounds. */
#define _GNU_SOURCE
#include "work.h"
#include "emit.h"
#include <sys/mman.h>
#define FRESH 100
#define WHOLE 200
#define BYTE 300
#define PROTECTED 400
#define REMAPPED 500
#define REPEAT 4

int main(void) {
    unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    emit(page, ADDPS);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    ((emitted)page)(FRESH);

    mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
    for (int r = 0; r < REPEAT; r++) {
        emit(page, MULPS);
        ((emitted)page)(WHOLE);
        emit(page, ADDPD);
        ((emitted)page)(WHOLE);
    }
    for (int r = 0; r < REPEAT; r++) {
        emit(page, SUBPS);
        ((emitted)page)(BYTE);
        page[7] = 0x5e; /* the opcode byte: div instead of sub */
        ((emitted)page)(BYTE);
    }
    for (int r = 0; r < REPEAT; r++) {
        mprotect(page, 4096, PROT_READ | PROT_WRITE);
        emit(page, r % 2 ? MAXPS : MULPS);
        mprotect(page, 4096, PROT_READ | PROT_EXEC);
        ((emitted)page)(PROTECTED);
    }
    for (int r = 0; r < REPEAT; r++) {
        munmap(page, 4096);
        void *again = mmap(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        CHECK(again == page);
        emit(page, r % 2 ? ADDPD : DIVPS);
        ((emitted)page)(REMAPPED);
    }
    return 0;
}
