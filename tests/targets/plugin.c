/* The library of dlopen_present: work in its constructor, in a function that calls back, and in its destructor. */
#include "work.h"
#define IN_CONSTRUCTOR 11
#define IN_FUNCTION 22
#define IN_DESTRUCTOR 33

__attribute__((constructor)) static void arrives(void) { work(IN_CONSTRUCTOR); }
__attribute__((destructor)) static void leaves(void) { work(IN_DESTRUCTOR); }

int plugin(int number, int (*call_back)(int)) {
    work(IN_FUNCTION);
    return call_back(number) + 1;
}
