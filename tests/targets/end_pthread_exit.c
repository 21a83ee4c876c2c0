/* The main thread leaves by pthread_exit; the program ends with its last thread, with code 0. */
#define _GNU_SOURCE
#include "work.h"
#include <pthread.h>
#include <time.h>
#define BEFORE 500
#define LASTING 300

static void *lasts(void *unused) {
    struct timespec moment = {0, 50000000};
    nanosleep(&moment, NULL);
    work(LASTING);
    return unused;
}

int main(void) {
    work(BEFORE);
    pthread_t thread;
    pthread_create(&thread, NULL, lasts, NULL);
    pthread_detach(thread);
    pthread_exit(NULL);
}
