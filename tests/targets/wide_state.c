/* Every vector and mask register of the build, MXCSR, the x87 stack and its control word keep their whole contents
 * over cold code (COLD functions made at run time, each entered for the first time), system calls and a signal
 * handler that spoils them all. */
#define _GNU_SOURCE
#include "work.h"
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#define COLD 300
#define RAISES 20

#if LANES == 16
#define REGISTERS 32
#define MOVE "vmovups"
#define NAME "zmm"
#elif LANES == 8
#define REGISTERS 16
#define MOVE "vmovups"
#define NAME "ymm"
#else
#define REGISTERS 16
#define MOVE "movups"
#define NAME "xmm"
#endif

static unsigned char fill[32][64], seen[32][64];
static unsigned long masks_in[8], masks_out[8];
static unsigned char *code;

#define LOAD(n) MOVE " " #n "*64(%0), %%" NAME #n "\n\t"
#define STORE(n) MOVE " %%" NAME #n ", " #n "*64(%0)\n\t"
#define EACH16(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define EACH32(X) EACH16(X) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31)
#if LANES == 16
#define EACH EACH32
#define MASK_IN(n) "kmovq " #n "*8(%2), %%k" #n "\n\t"
#define MASK_OUT(n) "kmovq %%k" #n ", " #n "*8(%3)\n\t"
#define MASKS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#else
#define EACH EACH16
#define MASK_IN(n)
#define MASK_OUT(n)
#define MASKS(X)
#endif

/* Fills everything, calls `function`, and reads everything back. The x87 stack holds 1 and pi, and the control word
 * asks for rounding down. */
static NOINLINE void cross(void *function) {
    unsigned mxcsr = 0x1f80 | 2 << 13, mxcsr_after;
    unsigned short control = 0x077f, control_after, control_old;
    long double one, pi;
    __asm__ volatile("fnstcw %0" : "=m"(control_old));
    __asm__ volatile("ldmxcsr %0\n\tfldcw %1\n\tfldpi\n\tfld1" : : "m"(mxcsr), "m"(control));
    register void *out __asm__("rbx") = seen;
    register void *in __asm__("r12") = fill;
    register void *masks __asm__("r13") = masks_in;
    register void *masks_to __asm__("r14") = masks_out;
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\tmov %0, %%r15\n\tmov %1, %0\n\t" EACH(LOAD) MASKS(MASK_IN)
                     "call *%4\n\tmov %%r15, %0\n\t" EACH(STORE) MASKS(MASK_OUT) "lea 128(%%rsp), %%rsp"
                     : "+r"(out) : "r"(in), "r"(masks), "r"(masks_to), "r"(function)
                     : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r15", "cc", "memory");
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1\n\tfstpt %2\n\tfstpt %3" : "=m"(mxcsr_after), "=m"(control_after), "=m"(one), "=m"(pi));
    _mm_setcsr(0x1f80);
    __asm__ volatile("fldcw %0" : : "m"(control_old));
    CHECK(mxcsr_after == mxcsr && control_after == control && one == 1.0L && pi > 3.14L && pi < 3.15L);
    for (int r = 0; r < REGISTERS; r++)
        CHECK(memcmp(fill[r], seen[r], WIDTH / 8) == 0);
    if (LANES == 16)
        CHECK(memcmp(masks_in, masks_out, sizeof masks_in) == 0);
}

static void spoil(int number) {
    (void)number;
    vec zero = V(setzero_ps)();
    for (int i = 0; i < 4; i++)
        __asm__ volatile("" : "+x"(zero));
#if LANES == 16
    __asm__ volatile("vpternlogd $255, %%zmm0, %%zmm0, %%zmm0\n\tvmovups %%zmm0, %%zmm31\n\tvmovups %%zmm0, %%zmm9\n\tkxorq %%k1, %%k1, %%k1\n\tkxorq %%k7, %%k7, %%k7"
                     : : : "xmm0", "xmm9", "xmm31", "k1", "k7");
#else
    __asm__ volatile("pcmpeqd %%xmm0, %%xmm0\n\tmovups %%xmm0, %%xmm9" : : : "xmm0", "xmm9");
#endif
    _mm_setcsr(0x1f80);
    work(1);
}

int main(void) {
    for (int r = 0; r < 32; r++)
        for (int b = 0; b < 64; b++)
            fill[r][b] = (unsigned char)(r * 64 + b * 7 + 1);
    for (int k = 0; k < 8; k++)
        masks_in[k] = 0x0123456789abcdefUL * (2 * k + 3);
    code = mmap(NULL, 64 * COLD + 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    /* each function: mov eax, SYS_getppid; syscall; test eax, eax; jz; nop; ret: four cold blocks and a system call */
    const unsigned char body[] = {0xb8, 110, 0, 0, 0, 0x0f, 0x05, 0x85, 0xc0, 0x74, 0x00, 0x90, 0xe8, 0x01, 0, 0, 0, 0xc3, 0xc3};
    for (int i = 0; i < COLD; i++) {
        memcpy(code + 64 * i, body, sizeof body);
        cross(code + 64 * i);
    }
    /* and one that sends itself a signal: mov edi, pid; mov esi, SIGUSR1; mov eax, SYS_kill; syscall; ret */
    signal(SIGUSR1, spoil);
    unsigned char *kills = code + 64 * COLD;
    const unsigned char sends[] = {0xbf, 0, 0, 0, 0, 0xbe, SIGUSR1, 0, 0, 0, 0xb8, 62, 0, 0, 0, 0x0f, 0x05, 0xc3};
    memcpy(kills, sends, sizeof sends);
    int pid = getpid();
    memcpy(kills + 1, &pid, 4);
    for (int i = 0; i < RAISES; i++)
        cross(kills);
    return 0;
}
