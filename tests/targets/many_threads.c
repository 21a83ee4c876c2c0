/* THREADS short-lived threads, at most AT_ONCE at a time; every other one is detached, and says when it is done
 * through a semaphore. */
#include "work.h"
#include <pthread.h>
#include <semaphore.h>
#define THREADS 64
#define AT_ONCE 8
#define STEPS 50

static sem_t places, done;

static void *run(void *unused) {
    work(STEPS);
    sem_post(&places);
    sem_post(&done);
    return unused;
}

int main(void) {
    sem_init(&places, 0, AT_ONCE);
    sem_init(&done, 0, 0);
    pthread_t joinable[THREADS];
    for (long i = 0; i < THREADS; i++) {
        sem_wait(&places);
        CHECK(pthread_create(&joinable[i], NULL, run, NULL) == 0);
        if (i % 2)
            pthread_detach(joinable[i]);
    }
    for (int i = 0; i < THREADS; i++)
        sem_wait(&done);
    for (int i = 0; i < THREADS; i += 2)
        pthread_join(joinable[i], NULL);
    return 0;
}
