/* A thread crashes while the main thread waits. */
#define _GNU_SOURCE
#include "work.h"
#include <pthread.h>
#define BEFORE 500
#define IN_THREAD 250

static volatile int *volatile nowhere;

static void *crashes(void *unused) {
    work(IN_THREAD);
    *nowhere = 1;
    return unused;
}

int main(void) {
    work(BEFORE);
    pthread_t thread;
    pthread_create(&thread, NULL, crashes, NULL);
    pthread_join(thread, NULL);
    return 0;
}
