/* What a handler sees and changes: the interrupted registers and instruction pointer are the program's own, vector
 * registers are saved whole, and what it writes into the context takes effect. Traps by ud2, int3, hlt and a
 * division by zero; each is stepped over by its handler. */
#define _GNU_SOURCE
#include "work.h"
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#define ROUNDS 10
#define STEPS 15

extern char at_ud2[], at_int3[], at_hlt[], at_div[];
static volatile int traps;

static void handler(int number, siginfo_t *info, void *raw) {
    ucontext_t *context = raw;
    greg_t *registers = context->uc_mcontext.gregs;
    char *at = (char *)registers[REG_RIP];
    work(STEPS);
    CHECK(registers[REG_RBX] == 0x1234567890abcdef && registers[REG_R15] == 77);
    CHECK(context->uc_mcontext.fpregs->_xmm[7].element[0] == 0x3fc00000);
    if (number == SIGILL) {
        CHECK(at == at_ud2 && info->si_addr == at_ud2);
        registers[REG_RIP] += 2;
    } else if (number == SIGTRAP) {
        CHECK(at == at_int3 + 1);
    } else if (number == SIGSEGV) {
        CHECK(at == at_hlt);
        registers[REG_RIP] += 1;
    } else {
        CHECK(number == SIGFPE && at == at_div && info->si_code == FPE_INTDIV && info->si_addr == at_div);
        registers[REG_RCX] = 5;
    }
    registers[REG_R14] = number;
    context->uc_mcontext.fpregs->_xmm[8].element[0] = 0x40000000 + number;
    traps++;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    int numbers[] = {SIGILL, SIGTRAP, SIGSEGV, SIGFPE};
    for (int i = 0; i < 4; i++)
        sigaction(numbers[i], &action, NULL);
    for (int r = 0; r < ROUNDS; r++) {
        long quotient, seen[4];
        unsigned lanes[4];
        float half = 1.5f;
        __asm__ volatile(
            "mov $0x1234567890abcdef, %%rbx\n\tmov $77, %%r15\n\tmovss %[half], %%xmm7\n\t"
            ".globl at_ud2, at_int3, at_hlt, at_div\n\t"
            "at_ud2: ud2\n\tmov %%r14, %[seen]\n\tmovd %%xmm8, %[lanes]\n\t"
            "at_int3: int3\n\tmov %%r14, 8+%[seen]\n\tmovd %%xmm8, 4+%[lanes]\n\t"
            "at_hlt: hlt\n\tmov %%r14, 16+%[seen]\n\tmovd %%xmm8, 8+%[lanes]\n\t"
            "mov $100, %%eax\n\txor %%edx, %%edx\n\txor %%ecx, %%ecx\n\t"
            "at_div: div %%rcx\n\tmov %%r14, 24+%[seen]\n\tmovd %%xmm8, 12+%[lanes]\n\t"
            : "=a"(quotient), [seen] "=o"(seen), [lanes] "=o"(lanes)
            : [half] "x"(half)
            : "rbx", "rcx", "rdx", "r14", "r15", "xmm7", "xmm8", "cc", "memory");
        CHECK(quotient == 20);
        for (int i = 0; i < 4; i++)
            CHECK(seen[i] == numbers[i] && lanes[i] == 0x40000000u + numbers[i]);
    }
    CHECK(traps == 4 * ROUNDS);
    return 0;
}
