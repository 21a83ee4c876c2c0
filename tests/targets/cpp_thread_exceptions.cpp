// Exceptions in several threads at once, carried over by std::future, and one of a type that nobody in the frames
// between knows.
#include "work.h"
#include <future>
#include <vector>
#define TASKS 8
#define STEPS 100

struct Odd {
    int number;
};

static NOINLINE int task(int number) {
    work(STEPS);
    if (number % 2)
        throw Odd{number};
    return number;
}

int main() {
    std::vector<std::future<int>> tasks;
    for (int i = 0; i < TASKS; i++)
        tasks.push_back(std::async(std::launch::async, task, i));
    int sum = 0, odd = 0;
    for (auto &future : tasks) {
        try {
            sum += future.get();
        } catch (const Odd &error) {
            odd += error.number;
        }
    }
    CHECK(sum == 0 + 2 + 4 + 6 && odd == 1 + 3 + 5 + 7);
    return 0;
}
