/* Leaf functions that keep data below the stack pointer (the red zone, 128 bytes) across branches, calls to nothing
 * and additions. */
#include "work.h"
#define ROUNDS 500
#define PLACES 16

static NOINLINE long leaf(long seed) {
    long total;
    __asm__ volatile(
        "mov $16, %%ecx\n\t"
        "1: lea (%1,%%rcx), %%rax\n\tneg %%rcx\n\tmov %%rax, (%%rsp,%%rcx,8)\n\tneg %%rcx\n\t" /* fills the 16 places from -8 to -128 */
        "dec %%ecx\n\tjnz 1b\n\t"
        "xor %%eax, %%eax\n\tmov $16, %%ecx\n\t"
        "2: addps %%xmm0, %%xmm0\n\tneg %%rcx\n\tadd (%%rsp,%%rcx,8), %%rax\n\tneg %%rcx\n\tjmp 3f\n\t"
        "ud2\n\t3: dec %%ecx\n\tjnz 2b\n\t"
        : "=&a"(total) : "r"(seed) : "rcx", "xmm0", "cc", "memory");
    return total;
}

int main(void) {
    for (long i = 0; i < ROUNDS; i++)
        CHECK(leaf(i) == 16 * i + 16 * 17 / 2);
    return 0;
}
