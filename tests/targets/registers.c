/* All sixteen general registers keep their values over cold and hot blocks, calls, indirect jumps and system calls
 * (which may change rax, rcx and r11 only). */
#include "work.h"
#include <stdint.h>
#define ROUNDS 200
#define PER_ROUND 2

static NOINLINE uint64_t all(uint64_t seed) {
    uint64_t sum;
    __asm__ volatile(
        "lea -128(%%rsp), %%rsp\n\tpush %%rbp\n\tpush %%rbx\n\tpush %%r12\n\tpush %%r13\n\tpush %%r14\n\tpush %%r15\n\t"
        "mov %%rdi, %%rax\n\tlea 1(%%rax), %%rbx\n\tlea 2(%%rax), %%rcx\n\tlea 3(%%rax), %%rdx\n\tlea 4(%%rax), %%rsi\n\tlea 5(%%rax), %%rbp\n\t"
        "lea 6(%%rax), %%r8\n\tlea 7(%%rax), %%r9\n\tlea 8(%%rax), %%r10\n\tlea 9(%%rax), %%r11\n\tlea 10(%%rax), %%r12\n\tlea 11(%%rax), %%r13\n\t"
        "lea 12(%%rax), %%r14\n\tlea 13(%%rax), %%r15\n\tjmp 1f\n\tud2\n\t"
        "1: addps %%xmm0, %%xmm0\n\tcall 2f\n\tpush %%rax\n\tlea 3f(%%rip), %%rax\n\txchg %%rax, (%%rsp)\n\tjmp *(%%rsp)\n\tud2\n\t"
        "2: addps %%xmm0, %%xmm0\n\tret\n\t"
        "3: lea 8(%%rsp), %%rsp\n\tadd %%rbx, %%rax\n\tadd %%rcx, %%rax\n\tadd %%rdx, %%rax\n\tadd %%rsi, %%rax\n\tadd %%rdi, %%rax\n\tadd %%rbp, %%rax\n\t"
        "add %%r8, %%rax\n\tadd %%r9, %%rax\n\tadd %%r10, %%rax\n\tadd %%r11, %%rax\n\tadd %%r12, %%rax\n\tadd %%r13, %%rax\n\tadd %%r14, %%rax\n\tadd %%r15, %%rax\n\t"
        "mov %%rax, %%rbx\n\tmov $110, %%eax\n\tsyscall\n\tmov %%rbx, %%rax\n\t" /* getppid */
        "add %%rdx, %%rax\n\tadd %%rsi, %%rax\n\tadd %%rbp, %%rax\n\tadd %%r8, %%rax\n\tadd %%r15, %%rax\n\t"
        "pop %%r15\n\tpop %%r14\n\tpop %%r13\n\tpop %%r12\n\tpop %%rbx\n\tpop %%rbp\n\tlea 128(%%rsp), %%rsp"
        : "=&a"(sum), "+D"(seed) : : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "xmm0", "cc", "memory");
    return sum;
}

int main(void) {
    for (uint64_t i = 0; i < ROUNDS; i++)
        CHECK(all(i) == 15 * i + 13 * 14 / 2 + 5 * i + 3 + 4 + 5 + 6 + 13);
    return 0;
}
