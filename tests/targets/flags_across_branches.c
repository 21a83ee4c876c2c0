/* Carry, overflow, zero, sign, parity, auxiliary and direction flags carried over jumps, calls, returns and counted
 * blocks. */
#include "work.h"
#include <stdint.h>
#define LIMBS 64
#define ROUNDS 50
#define COMBINATIONS 128
#define PER_COMBINATION 3

/* A number of LIMBS words plus itself, with the carry alive over the loop's branch and an addition that is counted. */
static NOINLINE int add_long(uint64_t *to, const uint64_t *from) {
    unsigned char carry;
    long left = LIMBS;
    __asm__ volatile("clc\n\t"
                     "1: mov (%2), %%rax\n\tadc %%rax, (%1)\n\tlea 8(%1), %1\n\tlea 8(%2), %2\n\t"
                     "addps %%xmm0, %%xmm0\n\tjmp 2f\n\tud2\n\t2: dec %3\n\tjnz 1b\n\tsetc %0"
                     : "=q"(carry), "+r"(to), "+r"(from), "+r"(left) : : "rax", "xmm0", "cc", "memory");
    return carry;
}

/* All six arithmetic flags set or clear, then a jump, a call and a return, an indirect jump; then read back. */
static NOINLINE uint64_t through(uint64_t flags) {
    uint64_t after;
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpush %1\n\tpopfq\n\tjmp 1f\n\tud2\n\t"
                     "1: addps %%xmm0, %%xmm0\n\tcall 2f\n\tjmp 3f\n\t"
                     "2: addps %%xmm0, %%xmm0\n\tret\n\t"
                     "3: lea 4f(%%rip), %%rdx\n\tjmp *%%rdx\n\tud2\n\t"
                     "4: addps %%xmm0, %%xmm0\n\tpushfq\n\tpop %0\n\tcld\n\tlea 128(%%rsp), %%rsp"
                     : "=r"(after) : "r"(flags) : "rdx", "xmm0", "cc", "memory");
    return after & 0xcd5;
}

int main(void) {
    static uint64_t a[LIMBS], b[LIMBS];
    for (int r = 0; r < ROUNDS; r++) {
        for (int i = 0; i < LIMBS; i++)
            a[i] = UINT64_MAX, b[i] = 0;
        b[0] = 1;
        CHECK(add_long(a, b) == 1);
        for (int i = 0; i < LIMBS; i++)
            CHECK(a[i] == 0);
    }
    const uint64_t bits[] = {0x001, 0x004, 0x010, 0x040, 0x080, 0x400, 0x800};
    for (int set = 0; set < COMBINATIONS; set++) {
        uint64_t flags = 0x202;
        for (int bit = 0; bit < 7; bit++)
            flags |= set >> bit & 1 ? bits[bit] : 0;
        CHECK(through(flags) == (flags & 0xcd5));
    }
    return 0;
}
