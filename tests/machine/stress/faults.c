/* Implicit null checks as virtual machines do them: the handler wants the exact instruction and registers, and chooses where to go on. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

extern char load1[], load2[], after1[];
static int good;
static double value = 2.5;

static void check(int signal, siginfo_t *info, void *context) {
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    char *pc = (char *)r[REG_RIP];
    (void)signal, (void)info;
    if (pc == load1 && r[REG_RBX] == 77) {
        r[REG_RIP] = (greg_t)after1;
    } else if (pc == load2 && r[REG_RDI] == 55 && r[REG_RCX] == 0) {
        r[REG_RCX] = (greg_t)&value;
    } else if (r[REG_RIP] == 0x10) { /* a call of nothing: return from it */
        r[REG_RIP] = *(greg_t *)r[REG_RSP];
        r[REG_RSP] += 8;
    } else {
        printf("the handler was shown another place\n");
        exit(1);
    }
    good++;
}

__attribute__((noinline, noclone)) static double once(void) {
    long x = 0;
    double v;
    __asm__ volatile("mov $77, %%ebx; mulsd %%xmm0, %%xmm0; addsd %%xmm0, %%xmm0\n.globl load1\nload1: mov (%%rax), %%rax\n jmp 1f\n"
                     ".globl after1\nafter1: mov $5, %%eax\n1:"
                     : "+a"(x)
                     :
                     : "rbx", "xmm0");
    if (x != 5)
        exit(2);
    __asm__ volatile("mov $55, %%edi; xor %%ecx, %%ecx; nop\n.globl load2\nload2: movsd (%%rcx), %0; addsd %0, %0\n" : "=x"(v) : : "rcx", "rdi");
    return v;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = check, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    double sum = 0;
    for (int i = 0; i < 500; i++)
        sum += once();
    void (*volatile nothing)(void) = (void (*)(void))0x10;
    for (int i = 0; i < 10; i++)
        nothing();
    printf("%d %g\n", good, sum);
    return 0;
}
