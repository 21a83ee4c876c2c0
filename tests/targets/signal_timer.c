/* A timer interrupts work at arbitrary instructions, TICKS times; the handler works too, and nothing that it
 * interrupts may be lost, done twice or spoiled. */
#include "work.h"
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#define TICKS 50
#define IN_HANDLER 20
#define IN_LOOP 100000

static volatile int ticks;

static void tick(int number) {
    (void)number;
    if (ticks < TICKS) {
        work(IN_HANDLER);
        ticks++;
    }
}

int main(void) {
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval each = {.it_interval = {0, 1000}, .it_value = {0, 1000}}, stop = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &each, NULL);
    work(IN_LOOP);
    unsigned long spun = 0;
    while (ticks < TICKS)
        spun += 3;
    setitimer(ITIMER_REAL, &stop, NULL);
    CHECK(spun % 3 == 0);
    work(IN_LOOP);
    return 0;
}
