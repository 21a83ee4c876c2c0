/* A thread other than the first calls execv while the first and a third are alive: what they had counted must not be
 * lost. */
#include "work.h"
#include <pthread.h>
#include <semaphore.h>
#define MAIN 100
#define OTHER 200
#define CALLER 400
#define AFTER_EXEC 800

static sem_t ready;
static char *self;

static void *other(void *unused) {
    work(OTHER);
    sem_post(&ready);
    for (;;)
        pause();
    return unused;
}

static void *caller(void *unused) {
    sem_wait(&ready);
    work(CALLER);
    char *arguments[] = {self, "again", NULL};
    execv("/proc/self/exe", arguments);
    return unused;
}

int main(int argc, char **argv) {
    if (argc > 1) {
        work(AFTER_EXEC);
        return 0;
    }
    self = argv[0];
    sem_init(&ready, 0, 0);
    pthread_t first, second;
    work(MAIN);
    pthread_create(&first, NULL, other, NULL);
    pthread_create(&second, NULL, caller, NULL);
    pthread_join(second, NULL);
    return 1;
}
