/* Code that writes over itself: a store changes the instruction right behind it, in the same run of code without a
 * branch between; and a loop that changes its own body while it runs. */
#define _GNU_SOURCE
#include "work.h"
#include <string.h>
#include <sys/mman.h>
#define CALLS 20
#define ROUNDS 10

int main(void) {
    unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    /* f(byte): mov [rip+1], dil (the opcode byte of the next instruction); 0f ?? c1 ; ret */
    const unsigned char next[] = {0x40, 0x88, 0x3d, 0x01, 0x00, 0x00, 0x00, 0x0f, 0x58, 0xc1, 0xc3};
    memcpy(page, next, sizeof next);
    __asm__ volatile("" : : : "memory");
    void (*function)(unsigned char) = (void (*)(unsigned char))page;
    for (int i = 0; i < CALLS; i++)
        function(i % 2 ? 0x59 : 0x58); /* mulps, addps */

    /* g(rounds, byte): xor into the opcode byte of its own loop body each round */
    const unsigned char loop[] = {0x0f, 0x58, 0xc1,                   /* addps or mulps xmm0, xmm1 */
                                  0x40, 0x30, 0x35, 0xf7, 0xff, 0xff, 0xff, /* xor [rip-9], sil: the 58 above */
                                  0x48, 0xff, 0xcf,                   /* dec rdi */
                                  0x75, 0xf1,                         /* jnz */
                                  0xc3};
    memcpy(page + 64, loop, sizeof loop);
    __asm__ volatile("" : : : "memory");
    ((void (*)(long, unsigned char))(page + 64))(2 * ROUNDS, 0x58 ^ 0x59);
    CHECK(page[65] == 0x58);
    return 0;
}
