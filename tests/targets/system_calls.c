/* System calls made by the instruction itself, rcx and r11 afterwards, vDSO clocks, cpuid with the leaves that
 * libraries probe, rdtsc, xgetbv and arch_prctl. */
#define _GNU_SOURCE
#include "work.h"
#include <cpuid.h>
#include <errno.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#define ROUNDS 100
#define BETWEEN 5
#define BESIDE_SYSCALL 2

extern char after_syscall[];

int main(void) {
    for (int i = 0; i < ROUNDS; i++) {
        long result;
        void *next;
        unsigned long flags;
        __asm__ volatile("addps %%xmm0, %%xmm0\n\tsyscall\n\t.globl after_syscall\n\tafter_syscall: mov %%rcx, %1\n\tmov %%r11, %2\n\taddps %%xmm0, %%xmm0"
                         : "=a"(result), "=r"(next), "=r"(flags) : "0"(SYS_getpid) : "rcx", "r11", "xmm0", "memory");
        CHECK(result == getpid() && next == after_syscall && (flags & 0x202) == 0x202);
        CHECK(syscall(9999) == -1 && errno == ENOSYS);
        struct timespec before, after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        work(BETWEEN);
        clock_gettime(CLOCK_MONOTONIC, &after);
        CHECK(after.tv_sec > before.tv_sec || (after.tv_sec == before.tv_sec && after.tv_nsec >= before.tv_nsec));
        unsigned long long start = __builtin_ia32_rdtsc();
        CHECK(__builtin_ia32_rdtsc() >= start);
        unsigned a, b, c, d, low, high;
        CHECK(__get_cpuid(0, &a, &b, &c, &d) && a >= 1);
        CHECK(__get_cpuid(1, &a, &b, &c, &d) && (d & bit_SSE2) && (c & bit_OSXSAVE));
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        CHECK((low & 3) == 3);
    }
    CHECK(getauxval(AT_PAGESZ) == 4096 && getauxval(AT_SYSINFO_EHDR) != 0);
    unsigned long base, again = 0;
    __asm__ volatile("mov %%fs:0, %0" : "=r"(base));
    CHECK(syscall(SYS_arch_prctl, 0x1003, &again) == 0 && again == base); /* ARCH_GET_FS */
    char name[16] = "";
    CHECK(prctl(PR_SET_NAME, "renamed") == 0 && prctl(PR_GET_NAME, name) == 0 && name[0] == 'r');
    return 0;
}
