/* Stacks of many pages: a frame of 4 MB, alloca in a loop, and a thread with 64 MB of stack that uses them. */
#include "work.h"
#include <alloca.h>
#include <pthread.h>
#include <string.h>
#define FRAMES 3
#define STEPS 100

static NOINLINE int frame(int value) {
    volatile char space[4 << 20];
    for (size_t i = 0; i < sizeof space; i += 4096)
        space[i] = (char)value;
    work(STEPS);
    return space[sizeof space - 4096] == (char)value;
}

static void *thread(void *unused) {
    char *space = alloca(48 << 20);
    for (int i = 0; i < FRAMES; i++) {
        memset(space, i, 48 << 20);
        work(STEPS);
        CHECK(space[12345] == i);
    }
    return unused;
}

int main(void) {
    for (int i = 0; i < FRAMES; i++)
        CHECK(frame(i));
    pthread_attr_t attributes;
    pthread_t other;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 20);
    CHECK(pthread_create(&other, &attributes, thread, NULL) == 0);
    pthread_join(other, NULL);
    return 0;
}
