/* MXCSR and the x87 control word: each rounding mode must give its own result, survive calls, system calls and new
 * threads, and keep its flags. */
#include "work.h"
#include <pthread.h>
#include <sys/syscall.h>
#define ROUNDS 25
#define MODES 4

static NOINLINE float third(void) {
    float one = 1.0f, three = 3.0f;
    __asm__ volatile("divss %1, %0" : "+x"(one) : "x"(three));
    return one;
}

static NOINLINE long double third87(void) {
    volatile long double one = 1.0L, three = 3.0L;
    return one / three;
}

static void *inherits(void *mode) {
    CHECK((_mm_getcsr() & 0x6000) == (unsigned)(long)mode);
    return NULL;
}

int main(void) {
    union { float f; unsigned u; } nearest, down, up, zero;
    for (int r = 0; r < ROUNDS; r++) {
        for (unsigned mode = 0; mode < MODES; mode++) {
            _mm_setcsr(0x1f80 | mode << 13);
            getppid();
            float value = third();
            CHECK(_mm_getcsr() == (0x1f80 | mode << 13 | 0x20)); /* the inexact flag */
            *(mode == 0 ? &nearest.f : mode == 1 ? &down.f : mode == 2 ? &up.f : &zero.f) = value;
            if (r == 0) {
                pthread_t thread;
                CHECK(pthread_create(&thread, NULL, inherits, (void *)(long)(mode << 13)) == 0);
                pthread_join(thread, NULL);
            }
        }
        CHECK(up.u == down.u + 1 && zero.u == down.u && nearest.u == up.u);
        unsigned short saved, single = 0x007f, got;
        __asm__ volatile("fnstcw %0" : "=m"(saved));
        __asm__ volatile("fldcw %0" : : "m"(single));
        getppid();
        long double rough = third87();
        __asm__ volatile("fnstcw %0" : "=m"(got));
        __asm__ volatile("fldcw %0" : : "m"(saved));
        CHECK(got == single && rough != third87());
    }
    _mm_setcsr(0x1f80);
    return 0;
}
