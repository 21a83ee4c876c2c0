/* Code that the kernel writes, by read, pread and readv, into a writable and executable page that has run before: no call fails, and the
 * new code counts. */
#define _GNU_SOURCE
#include "work.h"
#include "emit.h"
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#define ROUNDS 100
#define REPEAT 6

int main(void) {
    unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int file = memfd_create("code", 0);
    unsigned char code[32];
    for (int r = 0; r < REPEAT; r++) {
        int size = emit(code, r % 2 ? MULPS : ADDPS);
        CHECK(pwrite(file, code, (size_t)size, 0) == size && lseek(file, 0, SEEK_SET) == 0);
        struct iovec parts[2] = {{page, 5}, {page + 5, (size_t)size - 5}};
        long got = r % 3 == 0   ? read(file, page, (size_t)size)
                   : r % 3 == 1 ? pread(file, page, (size_t)size, 0)
                                : readv(file, parts, 2);
        CHECK(got == size);
        ((emitted)page)(ROUNDS);
    }
    return 0;
}
