/* Code written at run time by several threads at once: mapped, run, rewritten in place, protected, unmapped, beside its neighbours. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef long (*function)(long);

/* rax := rdi + k; some nops; addsd xmm0, xmm0; ret */
static void write_function(unsigned char *p, int k) {
    static const unsigned char tail[] = {0xf2, 0x0f, 0x58, 0xc0, 0xc3};
    memcpy(p, "\x48\x8d\x87", 3);
    memcpy(p + 3, &k, 4);
    memset(p + 7, 0x90, (size_t)(k % 5));
    memcpy(p + 7 + k % 5, tail, sizeof tail);
}

static long call(unsigned char *p, long n) { return ((function)(void *)p)(n); }

static void *fresh(void *unused) {
    long sum = 0;
    (void)unused;
    for (int i = 0; i < 300; i++) {
        unsigned char *p = mmap(NULL, 8192, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        write_function(p, i);
        sum += call(p, i);
        write_function(p + 100, i + 1);
        sum += call(p + 100, i);
        if (i % 2)
            mprotect(p, 4096, 5);
        sum += call(p, i);
        munmap(p, 8192);
    }
    return (void *)sum;
}

static void *in_place(void *unused) {
    unsigned char *p = mmap(NULL, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long sum = 0;
    (void)unused;
    for (int i = 0; i < 2000; i++) {
        write_function(p, i);
        sum += call(p, i);
    }
    return (void *)sum;
}

/* a write from the middle of a block to the page that the block is in: push rbx; mov [rdi], esi; mov eax, [rdi]; lea eax, [rax + rsi]; pop; ret */
static long beside_data(void) {
    static const unsigned char text[] = {0x53, 0x89, 0x37, 0x8b, 0x07, 0x8d, 0x04, 0x30, 0x5b, 0xc3};
    unsigned char *p = mmap(NULL, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long sum = 0;
    memcpy(p, text, sizeof text);
    for (int i = 0; i < 1500; i++)
        sum += ((int (*)(int *, int))(void *)p)((int *)(p + 512) + i % 64, i);
    return sum;
}

static long mapped_twice(void) {
    int fd = memfd_create("code", 0);
    if (fd < 0 || ftruncate(fd, 4096))
        return -1;
    unsigned char *w = mmap(NULL, 4096, 3, MAP_SHARED, fd, 0), *x = mmap(NULL, 4096, 5, MAP_SHARED, fd, 0);
    long sum = 0;
    for (int i = 0; i < 1000; i++) {
        write_function(w, i);
        sum += call(x, i);
    }
    return sum;
}

int main(void) {
    pthread_t threads[6];
    long sum = 0;
    for (int i = 0; i < 6; i++)
        pthread_create(&threads[i], NULL, i < 3 ? fresh : in_place, NULL);
    for (int i = 0; i < 6; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (long)result;
    }
    printf("%ld %ld %ld\n", sum, beside_data(), mapped_twice());
    return 0;
}
