/* Integers through printf and the heap: libc work that holds no floating point. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    for (int i = 1; i < 100; i++) {
        char *text = malloc(i * 100);
        memset(text, 'x', i);
        text[i] = 0;
        printf("%d %zu\n", i, strlen(text));
        free(text);
    }
    return 0;
}
