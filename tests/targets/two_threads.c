/* The main thread and two others, each with its own amount of work, so that a lost thread shows by which number is
 * missing. */
#include "work.h"
#include <pthread.h>
#define MAIN 1000
#define FIRST 2000
#define SECOND 4000

static void *run(void *steps) {
    work((long)steps);
    return NULL;
}

int main(void) {
    pthread_t first, second;
    CHECK(pthread_create(&first, NULL, run, (void *)FIRST) == 0);
    CHECK(pthread_create(&second, NULL, run, (void *)SECOND) == 0);
    work(MAIN);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    return 0;
}
