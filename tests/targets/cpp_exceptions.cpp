// THROWS exceptions, each through DEPTH frames with destructors that work, caught and thrown on half way.
#include "work.h"
#include <stdexcept>
#include <string>
#define THROWS 50
#define DEPTH 6
#define DOWN 10
#define UNWIND 20
#define CAUGHT 30

struct Guard {
    ~Guard() { work(UNWIND); }
};

static NOINLINE int descend(int depth, int number) {
    Guard guard;
    work(DOWN);
    if (depth == 1)
        throw std::runtime_error("number " + std::to_string(number));
    if (depth == DEPTH / 2) {
        try {
            return descend(depth - 1, number) + 1;
        } catch (const std::runtime_error &) {
            work(CAUGHT);
            throw;
        }
    }
    return descend(depth - 1, number) + 1;
}

int main() {
    int caught = 0;
    for (int i = 0; i < THROWS; i++) {
        try {
            descend(DEPTH, i);
        } catch (const std::exception &error) {
            caught += error.what() == "number " + std::to_string(i);
            work(CAUGHT);
        }
    }
    CHECK(caught == THROWS);
    return 0;
}
