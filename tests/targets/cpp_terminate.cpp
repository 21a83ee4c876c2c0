// An exception that nobody catches: std::terminate, then abort.
#include "work.h"
#include <stdexcept>
#define BEFORE 500

int main() {
    work(BEFORE);
    throw std::runtime_error("nobody catches this");
}
