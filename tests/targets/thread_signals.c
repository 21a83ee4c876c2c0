/* pthread_kill, pthread_cancel and thread-specific destructors: each path of a thread's end or interruption does
 * some work. */
#include "work.h"
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#define IN_HANDLER 40
#define IN_CLEANUP 60
#define IN_DESTRUCTOR 80
#define KILLS 10

static sem_t ready, handled;
static pthread_key_t key;

static void handler(int signal) {
    (void)signal;
    work(IN_HANDLER);
    sem_post(&handled);
}

static void cleanup(void *unused) {
    (void)unused;
    work(IN_CLEANUP);
}

static void destructor(void *unused) {
    (void)unused;
    work(IN_DESTRUCTOR);
}

static void *waits(void *unused) {
    pthread_setspecific(key, &key);
    pthread_cleanup_push(cleanup, NULL);
    sem_post(&ready);
    for (;;)
        pause();
    pthread_cleanup_pop(0);
    return unused;
}

int main(void) {
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, NULL);
    pthread_key_create(&key, destructor);
    sem_init(&ready, 0, 0);
    sem_init(&handled, 0, 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, waits, NULL) == 0);
    sem_wait(&ready);
    for (int i = 0; i < KILLS; i++) {
        pthread_kill(thread, SIGUSR1);
        while (sem_wait(&handled) && errno == EINTR)
            ;
    }
    void *result;
    pthread_cancel(thread);
    pthread_join(thread, &result);
    CHECK(result == PTHREAD_CANCELED);
    return 0;
}
