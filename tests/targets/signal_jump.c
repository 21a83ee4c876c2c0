/* siglongjmp out of handlers of SIGSEGV, SIGFPE, SIGILL and a timer-like SIGUSR1, ROUNDS times each. */
#include "work.h"
#include <setjmp.h>
#include <signal.h>
#define ROUNDS 20
#define KINDS 4
#define BEFORE 10
#define IN_HANDLER 20
#define AFTER 40

static sigjmp_buf place;
static volatile int *volatile nowhere;

static void handler(int number) {
    work(IN_HANDLER);
    siglongjmp(place, number);
}

static NOINLINE void cause(int number) {
    volatile int zero = 0;
    if (number == SIGSEGV)
        *nowhere = 1;
    else if (number == SIGFPE)
        zero = 100 / zero;
    else if (number == SIGILL)
        __asm__ volatile("ud2");
    else
        raise(number);
}

int main(void) {
    int numbers[KINDS] = {SIGSEGV, SIGFPE, SIGILL, SIGUSR1};
    for (int i = 0; i < KINDS; i++)
        signal(numbers[i], handler);
    for (volatile int i = 0; i < ROUNDS * KINDS; i++) {
        int number = numbers[i % KINDS], value;
        work(BEFORE);
        if ((value = sigsetjmp(place, 1)) == 0) {
            cause(number);
            _exit(98);
        }
        CHECK(value == number);
        work(AFTER);
    }
    return 0;
}
