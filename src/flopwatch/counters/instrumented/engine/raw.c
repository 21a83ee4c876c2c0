/* Memory and text without libc. */
#include "engine.h"

void *memcpy(void *to, const void *from, size_t n)
{
  void *start = to;
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
  return start;
}

void *memset(void *to, int byte, size_t n)
{
  void *start = to;
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(byte) : "memory");
  return start;
}

int memcmp(const void *a, const void *b, size_t n)
{
  const u8 *x = a, *y = b;
  for (; n; n--, x++, y++)
    if (*x != *y)
      return *x - *y;
  return 0;
}

size_t text_length(const char *s)
{
  size_t n = 0;
  while (s[n])
    n++;
  return n;
}

int text_starts(const char *s, const char *prefix)
{
  while (*prefix)
    if (*s++ != *prefix++)
      return 0;
  return 1;
}

char *text_add(char *to, const char *s)
{
  while ((*to = *s++))
    to++;
  return to;
}

static char *add_in_base(char *to, u64 n, u32 base)
{
  char digits[24];
  int i = 0;
  do {
    digits[i++] = "0123456789abcdef"[n % base];
    n /= base;
  } while (n);
  while (i)
    *to++ = digits[--i];
  *to = 0;
  return to;
}

char *text_add_number(char *to, u64 n) { return add_in_base(to, n, 10); }
char *text_add_hex(char *to, u64 n) { return add_in_base(to, n, 16); }
