/* Every kind of operand relative to the instruction pointer: vector constants, compares and arithmetic with
 * immediates, stores, jumps and calls through memory, exchange and atomics, x87 loads, and lea; also absolute 32-bit
 * and 64-bit (moffs) addresses, and thread-local storage. */
#include "work.h"
#include <stdint.h>
#define ROUNDS 100

static float constant[4] __attribute__((aligned(16))) = {1, 2, 3, 4};
static uint64_t number = 5, other = 6;
static uint8_t small = 7;
static double real = 1.5;
static __thread uint64_t local = 8;
static void *target;

static NOINLINE void calls(void) { __asm__ volatile("addps %%xmm1, %%xmm1" : : : "xmm1"); }
static void (*pointer)(void) = calls;

int main(void) {
    for (int i = 0; i < ROUNDS; i++) {
        float lanes[4];
        int rounded;
        unsigned char equal, small_equal;
        uint64_t got, swapped = 9;
        __m128 v = _mm_setzero_ps();
        __asm__ volatile("addps %1, %0" : "+x"(v) : "m"(constant));
        _mm_storeu_ps(lanes, v);
        CHECK(lanes[0] == 1 && lanes[3] == 4);
        __asm__ volatile("cmpq $5, %1\n\tsete %0" : "=q"(equal) : "m"(number) : "cc");
        __asm__ volatile("cmpb $7, %1\n\tsete %0" : "=q"(small_equal) : "m"(small) : "cc");
        CHECK(equal && small_equal);
        __asm__ volatile("movq $1000, %0\n\taddq $-990, %0\n\timulq $3, %0, %1\n\tshlq $1, %0" : "+m"(other), "=r"(got) : : "cc");
        CHECK(got == 30 && other == 20);
        __asm__ volatile("xchgq %0, %1\n\tlock xaddq %0, %1" : "+r"(swapped), "+m"(other) : : "cc");
        CHECK(other == 29 && swapped == 9);
        __asm__ volatile("fldl %1\n\tfistpl %0" : "=m"(rounded) : "m"(real));
        CHECK(rounded == 2);
        __asm__ volatile("lea 1f(%%rip), %0\n\tmov %0, %1\n\tjmp *%1\n\tud2\n\t1:" : "=&r"(got), "=m"(target));
        pointer();
        __asm__ volatile("mov %%fs:0, %0" : "=r"(got));
        CHECK(got != 0 && local == 8 && (uint64_t)&local < got);
        __asm__ volatile("movabs %1, %%rax\n\tmov %%rax, %0" : "=r"(got) : "i"(0x1122334455667788) : "rax");
        CHECK(got == 0x1122334455667788);
        __asm__ volatile("mulps .Lconstant%=(%%rip), %0\n\t.pushsection .rodata\n\t.balign 16\n\t.Lconstant%=: .long 0,0,0,0\n\t.popsection" : "+x"(v));
    }
    return 0;
}
