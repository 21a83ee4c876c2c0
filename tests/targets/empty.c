/* Nothing: what the loader and libc do before and after main, which must be no floating-point work at all. */
int main(void) { return 0; }
