/* FUNCTIONS different functions made at run time, each run once and then all again, so that caches of translated
 * code fill up and are emptied. */
#define _GNU_SOURCE
#include "work.h"
#include "emit.h"
#include <sys/mman.h>
#define FUNCTIONS 20000
#define ROUNDS 2
#define REPEAT 2

int main(void) {
    size_t size = 32 * (size_t)FUNCTIONS;
    unsigned char *code = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < FUNCTIONS; i++)
        emit(code + 32 * i, i % 2 ? ADDPS : MULPS);
    mprotect(code, size, PROT_READ | PROT_EXEC);
    for (int r = 0; r < REPEAT; r++)
        for (int i = 0; i < FUNCTIONS; i++)
            ((emitted)(code + 32 * i))(ROUNDS);
    return 0;
}
