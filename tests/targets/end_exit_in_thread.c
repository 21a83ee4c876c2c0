/* Another thread calls exit while the main thread sleeps and a third one is blocked. */
#define _GNU_SOURCE
#include "work.h"
#include <pthread.h>
#include <semaphore.h>
#define BEFORE 500
#define SLEEPER 100
#define EXITER 200

static sem_t ready;

static void *sleeps(void *unused) {
    work(SLEEPER);
    sem_post(&ready);
    for (;;)
        pause();
    return unused;
}

static void *exits(void *unused) {
    work(EXITER);
    exit(4);
    return unused;
}

int main(void) {
    work(BEFORE);
    sem_init(&ready, 0, 0);
    pthread_t first, second;
    pthread_create(&first, NULL, sleeps, NULL);
    sem_wait(&ready);
    pthread_create(&second, NULL, exits, NULL);
    for (;;)
        pause();
}
