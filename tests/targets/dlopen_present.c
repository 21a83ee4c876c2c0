/* A library with work in it, opened, called (it calls back) and closed ROUNDS times: loaded again, perhaps at the
 * same address. */
#include "work.h"
#include <dlfcn.h>
#include <string.h>
#define ROUNDS 6
#define IN_CALLBACK 44

static int call_back(int number) {
    work(IN_CALLBACK);
    return number * 2;
}

int main(int argc, char **argv) {
    char path[4096];
    (void)argc;
    snprintf(path, sizeof path, "%s.plugin.so", argv[0]);
    for (int i = 0; i < ROUNDS; i++) {
        void *library = dlopen(path, i % 2 ? RTLD_NOW : RTLD_LAZY);
        if (library == NULL)
            fprintf(stderr, "%s\n", dlerror());
        CHECK(library != NULL);
        int (*plugin)(int, int (*)(int)) = (int (*)(int, int (*)(int)))dlsym(library, "plugin");
        CHECK(plugin != NULL && plugin(i, call_back) == 2 * i + 1);
        CHECK(dlclose(library) == 0);
    }
    return 0;
}
