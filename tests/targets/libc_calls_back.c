/* Code that libc calls back: qsort, bsearch, pthread_once, atexit, ftw, an ifunc resolver, lazy binding, and printf
 * with a hook's stream. */
#define _GNU_SOURCE
#include "work.h"
#include <pthread.h>
#include <stdio.h>
#define ITEMS 8
#define STEPS 5
#define ONCE 100
#define AT_EXIT 200
#define RESOLVED 300
#define WRITTEN 400

static int compares;
static int (*chosen(void))(void);

static int compare(const void *a, const void *b) {
    compares++;
    return *(const int *)a - *(const int *)b;
}

static int key_compare(const void *key, const void *item) {
    work(STEPS);
    (void)key, (void)item;
    return 0; /* found at the first try */
}

static void once(void) { work(ONCE); }
static void at_exit(void) { work(AT_EXIT); }

static int resolved_body(void) {
    work(RESOLVED);
    return 12;
}
static int (*chosen(void))(void) { return resolved_body; }
int resolved(void) __attribute__((ifunc("chosen")));

static ssize_t writer(void *cookie, const char *text, size_t size) {
    (void)cookie, (void)text;
    work(WRITTEN);
    return (ssize_t)size;
}

int main(void) {
    int items[ITEMS] = {5, 3, 8, 1, 9, 2, 7, 4};
    qsort(items, ITEMS, sizeof items[0], compare);
    CHECK(compares > 0 && items[0] == 1 && items[ITEMS - 1] == 9);
    CHECK(bsearch(items, items, ITEMS, sizeof items[0], key_compare) != NULL);
    pthread_once_t control = PTHREAD_ONCE_INIT;
    pthread_once(&control, once);
    pthread_once(&control, once);
    CHECK(resolved() == 12);
    FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = writer});
    fprintf(stream, "%d", 5);
    fclose(stream);
    atexit(at_exit);
    return 0;
}
