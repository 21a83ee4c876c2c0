/* Exceptions thrown by a signal handler, cancelled threads: the unwinder passes the handler's frame and runs destructors. */
#include <csignal>
#include <cstdio>
#include <pthread.h>
#include <unistd.h>

static int destroyed, caught;

struct Witness {
    ~Witness() { destroyed++; }
};

[[noreturn]] static void thrower(int number) { throw number; }

__attribute__((noinline)) static int read_from(volatile int *place) {
    Witness witness;
    return *place;
}

static void *wait_forever(void *pipe_end) {
    Witness witness;
    char byte;
    return read(*static_cast<int *>(pipe_end), &byte, 1) < 0 ? nullptr : pipe_end;
}

int main() {
    int *volatile address = reinterpret_cast<int *>(8);
    struct sigaction action = {};
    action.sa_handler = thrower;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &action, nullptr);
    for (int i = 0; i < 5; i++)
        try {
            read_from(address);
        } catch (int number) {
            caught += number;
        }
    int ends[2];
    if (pipe(ends))
        return 1;
    for (int i = 0; i < 5; i++) {
        pthread_t thread;
        pthread_create(&thread, nullptr, wait_forever, ends);
        usleep(2000);
        pthread_cancel(thread);
        pthread_join(thread, nullptr);
    }
    std::printf("%d %d\n", caught, destroyed);
}
