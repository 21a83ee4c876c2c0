/* rep movs, stos, scas, cmps and lods, forwards and backwards, of zero and many elements, with counted instructions
 * beside them. */
#include "work.h"
#include <string.h>
#define ROUNDS 40
#define PER_ROUND 3
#define SIZE 1000

int main(void) {
    static char from[SIZE], to[SIZE];
    for (int r = 0; r < ROUNDS; r++) {
        size_t size = SIZE, zero = 0;
        char *f = from, *t = to;
        __asm__ volatile("addps %%xmm0, %%xmm0\n\trep stosb\n\taddps %%xmm0, %%xmm0" : "+D"(f), "+c"(size) : "a"(r + 1) : "xmm0", "memory");
        CHECK(size == 0 && f == from + SIZE && from[0] == r + 1 && from[SIZE - 1] == r + 1);
        f = from, size = SIZE / 8;
        __asm__ volatile("rep movsq\n\taddps %%xmm0, %%xmm0" : "+S"(f), "+D"(t), "+c"(size) : : "xmm0", "memory");
        CHECK(t == to + SIZE && memcmp(from, to, SIZE) == 0);
        f = from + SIZE - 1, t = to + SIZE - 1, size = SIZE;
        from[0] = 77;
        __asm__ volatile("std\n\trep movsb\n\tcld" : "+S"(f), "+D"(t), "+c"(size) : : "memory");
        CHECK(size == 0 && to[0] == 77);
        to[500] = 99;
        t = to + 1, size = SIZE;
        __asm__ volatile("repne scasb" : "+D"(t), "+c"(size) : "a"(99) : "cc", "memory");
        CHECK(t == to + 501);
        f = from, t = to, size = SIZE;
        __asm__ volatile("repe cmpsb" : "+S"(f), "+D"(t), "+c"(size) : : "cc", "memory");
        CHECK(t == to + 501);
        __asm__ volatile("rep movsb" : "+S"(f), "+D"(t), "+c"(zero) : : "memory");
        CHECK(t == to + 501);
    }
    return 0;
}
