/* Machine code written at run time: a function of one argument, the number of rounds, that does one packed operation
 * on xmm0 a round. */
#ifndef EMIT_H
#define EMIT_H

#include <string.h>

typedef void (*emitted)(long rounds);

/* the operations, as the bytes that stand before the operands xmm0, xmm1 */
static const unsigned char ADDPS[] = {0x0f, 0x58, 0xc1, 0x90}, MULPS[] = {0x0f, 0x59, 0xc1, 0x90}, ADDPD[] = {0x66, 0x0f, 0x58, 0xc1},
                           SUBPS[] = {0x0f, 0x5c, 0xc1, 0x90}, DIVPS[] = {0x0f, 0x5e, 0xc1, 0x90}, MAXPS[] = {0x0f, 0x5f, 0xc1, 0x90};

/* Writes the function with four bytes of operation into `to` (18 bytes) and returns its size. */
static inline int emit(unsigned char *to, const unsigned char operation[4]) {
    static const unsigned char head[] = {0x0f, 0x57, 0xc0, 0x0f, 0x28, 0xc8}; /* xorps xmm0, xmm0; movaps xmm1, xmm0 */
    static const unsigned char tail[] = {0x48, 0xff, 0xcf, 0x75, 0xf7, 0xc3};    /* dec rdi; jnz to the operation; ret */
    memcpy(to, head, sizeof head);
    memcpy(to + sizeof head, operation, 4);
    memcpy(to + sizeof head + 4, tail, sizeof tail);
    return (int)(sizeof head + 4 + sizeof tail);
}

#endif
