/* What the targets share: vectors as wide as the build allows, and a known piece of floating-point work.
 *
 * Each target is built three times: SSE2 (4 floats a register), AVX2 + FMA (8) and AVX-512 (16). Sizes are `#define
 * NAME number` lines, which expected.py reads from the source, so that an expected count is a formula of the names
 * used here.
 */
#ifndef WORK_H
#define WORK_H

#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

#if defined(__AVX512F__)
#define LANES 16
#define WIDTH 512
typedef __m512 vec;
typedef __m512d vec64;
#define V(name) _mm512_##name
#elif defined(__AVX2__)
#define LANES 8
#define WIDTH 256
typedef __m256 vec;
typedef __m256d vec64;
#define V(name) _mm256_##name
#else
#define LANES 4
#define WIDTH 128
typedef __m128 vec;
typedef __m128d vec64;
#define V(name) _mm_##name
#endif

#if defined(__FMA__)
#define HAVE_FMA 1
#else
#define HAVE_FMA 0
#endif

/* Ends the program when a self-check fails: the target is then wrong, or what runs it is. */
static inline void check(int holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "self-check failed: %s\n", what);
        _exit(99);
    }
}
#define CHECK(condition) check((condition), #condition)

/* a * b + c: one fma where the build has it, else one mul and one add; asm keeps the compiler from folding or
 * hoisting any of them. */
static inline vec multiply_add(vec a, vec b, vec c) {
#if HAVE_FMA
    __asm__ volatile("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
#else
    __asm__ volatile("mulps %1, %0" : "+x"(a) : "x"(b));
    __asm__ volatile("addps %1, %0" : "+x"(c) : "x"(a));
    return c;
#endif
}

/* Exactly `steps` multiply_adds (below 2^24, so that float counts them without rounding), and a check that each was
 * done. */
static NOINLINE __attribute__((unused)) void work(long steps) {
    vec one = V(set1_ps)(1.0f), sum = V(setzero_ps)();
    for (long i = 0; i < steps; i++)
        sum = multiply_add(one, one, sum);
    float lanes[LANES];
    V(storeu_ps)(lanes, sum);
    for (int i = 0; i < LANES; i++)
        check(lanes[i] == (float)steps, "work() counted its steps");
}

#endif
