/* dlopen of a library that does not exist, of a file that is no library, and of a symbol that is not there, with
 * work before, between and after, in two threads. */
#include "work.h"
#include <dlfcn.h>
#include <pthread.h>
#define BEFORE 100
#define BETWEEN 200
#define AFTER 400
#define IN_THREAD 800
#define ROUNDS 5

static void *thread(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(dlopen("libno_such_library_either.so", RTLD_LAZY) == NULL);
        work(IN_THREAD);
    }
    return unused;
}

int main(void) {
    pthread_t other;
    work(BEFORE);
    CHECK(dlopen("libno_such_library.so.7", RTLD_NOW) == NULL && dlerror() != NULL);
    work(BETWEEN);
    CHECK(dlopen("/proc/self/maps", RTLD_NOW) == NULL);
    CHECK(dlsym(RTLD_DEFAULT, "no_such_symbol") == NULL);
    work(AFTER);
    CHECK(pthread_create(&other, NULL, thread, NULL) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(dlopen("libno_such_library.so.7", RTLD_NOW) == NULL);
        work(AFTER);
    }
    pthread_join(other, NULL);
    return 0;
}
