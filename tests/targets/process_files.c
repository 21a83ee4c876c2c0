/* /proc/self/environ and /proc/self/cmdline, read as a program reads them that does not trust getenv; on stdout.
 * The environment may end in zeros where the engine's two variables stood: only root may tell the kernel that it is shorter. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static void show(const char *path) {
    char text[65536];
    int file = open(path, O_RDONLY);
    ssize_t size = read(file, text, sizeof text);
    while (size > 1 && !text[size - 1] && !text[size - 2])
        size--;
    for (ssize_t i = 0; i < size; i++)
        putchar(text[i] ? text[i] : '\n');
    printf("(%ld bytes of %s)\n", (long)size, path);
    close(file);
}

int main(void) {
    show("/proc/self/cmdline");
    show("/proc/self/environ");
    return 0;
}
