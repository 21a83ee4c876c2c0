/* Ends by a write through a null pointer; the additions behind it in the same run of code are never reached. */
#define _GNU_SOURCE
#include "work.h"
#define BEFORE 500
#define REACHED 2

int main(void) {
    work(BEFORE);
    __m128 sum = _mm_setzero_ps();
    __asm__ volatile("addps %0, %0\n\taddps %0, %0\n\tmovl $1, 0\n\taddps %0, %0\n\taddps %0, %0\n\taddps %0, %0" : "+x"(sum) : : "memory");
    return 0;
}
