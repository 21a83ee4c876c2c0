/* A thread pool that a constructor starts before main; main hands it JOBS pieces of work, and a destructor works
 * once more after main. */
#include "work.h"
#include <pthread.h>
#include <semaphore.h>
#define WORKERS 3
#define JOBS 12
#define STEPS 300
#define AFTER_MAIN 70

static sem_t jobs, done;
static pthread_t workers[WORKERS];

static void *worker(void *unused) {
    for (;;) {
        sem_wait(&jobs);
        work(STEPS);
        sem_post(&done);
    }
    return unused;
}

__attribute__((constructor)) static void before(void) {
    sem_init(&jobs, 0, 0);
    sem_init(&done, 0, 0);
    for (int i = 0; i < WORKERS; i++)
        CHECK(pthread_create(&workers[i], NULL, worker, NULL) == 0);
    work(STEPS);
}

__attribute__((destructor)) static void after(void) { work(AFTER_MAIN); }

int main(void) {
    for (int i = 0; i < JOBS; i++)
        sem_post(&jobs);
    for (int i = 0; i < JOBS; i++)
        sem_wait(&done);
    return 0;
}
