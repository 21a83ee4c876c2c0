/* A function's return address, its own code bytes and a backtrace are the program's own; a return address that was
 * changed on the stack takes effect; rets without calls and calls without rets. */
#include "work.h"
#include <execinfo.h>
#define ROUNDS 100
#define REDIRECTED 2

extern char __executable_start[], etext[], after_call[], marked[];

static NOINLINE void *own_return(void) { return __builtin_return_address(0); }

int main(void) {
    for (int i = 0; i < ROUNDS; i++) {
        char *address = own_return();
        CHECK(address > (char *)__executable_start && address < (char *)etext);

        void *popped;
        __asm__ volatile("lea -128(%%rsp), %%rsp\n\tcall 1f\n\t.globl after_call\n\tafter_call: 1: pop %0\n\tlea 128(%%rsp), %%rsp" : "=r"(popped) : : "memory");
        CHECK(popped == after_call);

        long reached = 0;
        __asm__ volatile("lea -128(%%rsp), %%rsp\n\tlea 1f(%%rip), %%rax\n\tpush %%rax\n\tret\n\tud2\n\t" /* a ret that is a jump */
                         "1: addps %%xmm0, %%xmm0\n\tinc %0\n\tcall 2f\n\tud2\n\tud2\n\taddps %%xmm0, %%xmm0\n\tjmp 3f\n\t"
                         "2: addq $4, (%%rsp)\n\tret $0\n\t" /* returns 4 bytes behind its call: over the two ud2 */
                         "3: lea 128(%%rsp), %%rsp" : "+r"(reached) : : "rax", "xmm0", "cc", "memory");
        CHECK(reached == 1);

        void *frames[8];
        CHECK(i > 0 || (backtrace(frames, 8) >= 2 && (char *)frames[0] > (char *)__executable_start && (char *)frames[0] < (char *)etext));
    }
    const unsigned char *code;
    __asm__ volatile("lea marked(%%rip), %0\n\tjmp 1f\n\t.globl marked\n\tmarked: .byte 0xde, 0xad, 0xbe, 0xef\n\t1:" : "=r"(code));
    CHECK(code[0] == 0xde && code[3] == 0xef);
    return 0;
}
