/* CHILDREN children at a time, forked by a thread while another thread works: the counters of the parent's threads
 * must not appear in them. */
#include "work.h"
#include <pthread.h>
#include <sys/wait.h>
#define CHILDREN 12
#define STEPS 100
#define BESIDE 5000

static void *beside(void *unused) {
    work(BESIDE);
    return unused;
}

static void *forks(void *unused) {
    for (int i = 0; i < CHILDREN; i++)
        if (fork() == 0) {
            work(STEPS);
            _exit(0);
        }
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        CHECK(wait(&status) > 0 && status == 0);
    }
    return unused;
}

int main(void) {
    pthread_t first, second;
    pthread_create(&first, NULL, beside, NULL);
    pthread_create(&second, NULL, forks, NULL);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    return 0;
}
