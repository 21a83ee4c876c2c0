/* One thread writes code, another runs it; afterwards both run code that the other wrote over, handing it to and
 * fro. */
#define _GNU_SOURCE
#include "work.h"
#include "emit.h"
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#define ROUNDS 100
#define HANDOVERS 10

static unsigned char *page;
static sem_t written, ran;

static void *runner(void *unused) {
    for (int i = 0; i < HANDOVERS; i++) {
        sem_wait(&written);
        ((emitted)page)(ROUNDS);
        emit(page, MULPS);
        sem_post(&ran);
    }
    return unused;
}

int main(void) {
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sem_init(&written, 0, 0);
    sem_init(&ran, 0, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, runner, NULL);
    for (int i = 0; i < HANDOVERS; i++) {
        emit(page, ADDPS);
        sem_post(&written);
        sem_wait(&ran);
        ((emitted)page)(ROUNDS);
    }
    pthread_join(thread, NULL);
    return 0;
}
