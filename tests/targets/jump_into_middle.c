/* Two readings of the same bytes: a jump into the middle of an instruction finds another one there (mov eax, imm32
 * whose constant holds mulps and ret); and blocks that overlap because a loop enters one behind its start. */
#include "work.h"
#define ROUNDS 300
#define REENTERED 4

static NOINLINE void outer(void) {
    __asm__ volatile("call 1f\n\tcall 1f+1\n\tjmp 2f\n\t"
                     /* read from its start: mov eax, 0x90c0590f; ret. From its second byte: mulps xmm0, xmm0; nop; ret */
                     "1: .byte 0xb8, 0x0f, 0x59, 0xc0, 0x90, 0xc3\n\t2:"
                     : : : "rax", "xmm0", "cc", "memory");
}

static NOINLINE void overlapping(void) {
    __asm__ volatile("mov $4, %%ecx\n\tjmp 1f\n\t"
                     "1: addps %%xmm0, %%xmm0\n\t"
                     "2: subps %%xmm0, %%xmm0\n\t"
                     "dec %%ecx\n\tjz 3f\n\ttest $1, %%cl\n\tjz 1b\n\tjmp 2b\n\t3:"
                     : : : "rcx", "xmm0", "cc");
}

int main(void) {
    for (int i = 0; i < ROUNDS; i++) {
        outer();
        overlapping();
    }
    return 0;
}
