/* Reads stdin to its end, writes it doubled to stdout and its size to stderr, and returns 3. */
#include "work.h"
#define PER_BYTE 2

int main(void) {
    int byte, count = 0;
    while ((byte = getchar()) != EOF) {
        putchar(byte);
        putchar(byte);
        work(PER_BYTE);
        count++;
    }
    fprintf(stderr, "%d bytes\n", count);
    return 3;
}
