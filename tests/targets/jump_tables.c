/* A dense switch (a jump table), function pointers, tail calls and computed gotos: a small interpreter of PROGRAM
 * instructions, run ROUNDS times. */
#include "work.h"
#define ROUNDS 200
#define ADDS 3
#define MULS 2
#define SUBS 1

static __m128 sum;
static NOINLINE void add(void) { __asm__ volatile("addps %0, %0" : "+x"(sum)); }
static NOINLINE void mul(void) { __asm__ volatile("mulps %0, %0" : "+x"(sum)); }
static NOINLINE void sub(void) { __asm__ volatile("subps %0, %0" : "+x"(sum)); }
static NOINLINE void tail(void (*function)(void)) { function(); }

static NOINLINE int by_switch(int code) {
    switch (code) {
    case 0: add(); return 3;
    case 1: mul(); return 1;
    case 2: sub(); return 4;
    case 3: return 1;
    case 4: return 5;
    case 5: return 9;
    case 6: return 2;
    default: return 6;
    }
}

int main(void) {
    static const int program[] = {0, 1, 0, 2, 3, 4, 1, 0, 5, 6, 7};
    void (*functions[])(void) = {add, mul, sub};
    static void *labels[] = {&&l_add, &&l_mul, &&l_sub, &&l_end};
    for (int r = 0; r < ROUNDS; r++) {
        int total = 0, at = 0;
        for (unsigned i = 0; i < sizeof program / sizeof program[0]; i++) {
            total += by_switch(program[i]);
            if (program[i] < 3)
                tail(functions[program[i]]);
        }
        CHECK(total == 3 * ADDS + MULS + 4 * SUBS + 1 + 5 + 9 + 2 + 6);
        static const int threaded[] = {0, 0, 1, 0, 2, 1, 3};
        goto *labels[threaded[at]];
    l_add:
        add();
        goto *labels[threaded[++at]];
    l_mul:
        mul();
        goto *labels[threaded[++at]];
    l_sub:
        sub();
        goto *labels[threaded[++at]];
    l_end:
        CHECK(at == ADDS + MULS + SUBS);
    }
    return 0;
}
