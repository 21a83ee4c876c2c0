/* Run-time code written through a second mapping of the same memory (as just-in-time compilers do that never have a
 * page writable and executable), rewritten REPEAT times. */
#define _GNU_SOURCE
#include "work.h"
#include "emit.h"
#include <sys/mman.h>
#define ROUNDS 100
#define REPEAT 6

int main(void) {
    int memory = memfd_create("code", MFD_CLOEXEC);
    CHECK(memory >= 0 && ftruncate(memory, 4096) == 0);
    unsigned char *writable = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, memory, 0);
    CHECK(writable != MAP_FAILED && code != MAP_FAILED);
    for (int r = 0; r < REPEAT; r++) {
        emit(writable, r % 2 ? ADDPS : MULPS);
        ((emitted)code)(ROUNDS);
    }
    return 0;
}
