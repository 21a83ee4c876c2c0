/* A load that faults in the middle of a run of additions: the handler opens the page and the load is tried again, or
 * jumps away. Additions before the fault were done once, the one that faulted once (on its second try) or never, and
 * those behind it once or never. */
#define _GNU_SOURCE
#include "work.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#define RESTARTS 20
#define JUMPS 30
#define BEFORE 3
#define FAULTING 1
#define BEHIND 2

static char *page;
static sigjmp_buf place;
static volatile int jump;

static void handler(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    CHECK((char *)info->si_addr >= page && (char *)info->si_addr < page + 4096);
    if (jump)
        siglongjmp(place, 1);
    mprotect(page, 4096, PROT_READ);
}

static NOINLINE float additions(void) {
    __m128 sum = _mm_setzero_ps(), one = _mm_set1_ps(1.0f);
    __asm__ volatile("addps %1, %0\n\taddps %1, %0\n\taddps %1, %0\n\t"
                     "addps (%2), %0\n\t"
                     "addps %1, %0\n\taddps %1, %0"
                     : "+x"(sum) : "x"(one), "r"(page) : "memory");
    return _mm_cvtss_f32(sum);
}

int main(void) {
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    for (int i = 0; i < RESTARTS; i++) {
        mprotect(page, 4096, PROT_NONE);
        CHECK(additions() == (float)(BEFORE + BEHIND));
    }
    mprotect(page, 4096, PROT_NONE);
    jump = 1;
    volatile int jumps = 0;
    for (volatile int i = 0; i < JUMPS; i++) {
        if (sigsetjmp(place, 1) == 0)
            additions();
        else
            jumps++;
    }
    CHECK(jumps == JUMPS);
    return 0;
}
