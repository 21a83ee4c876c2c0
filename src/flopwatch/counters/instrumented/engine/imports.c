/* Python programs: importing modules runs natively, since it is most of a program's start and holds next to no arithmetic.
 *
 * The interpreter's import function is found in its dynamic symbols. Met in translated code, it is called natively; behind it the thread is
 * followed again, and so is what it left behind: threads, handlers, code that came or went, or a process of its own, if it forked.
 */
#include "engine.h"

#define SLOW 20000 /* cycles: what took less has started nothing (a module that was loaded already) */

u64 import_function;
u32 count_imports = 1;

/* ---- finding the function: ELF gABI, chapter 5 (dynamic section); the GNU hash table of binutils ---- */

typedef struct Symbol {
  u32 name;
  u8 info, other;
  u16 section;
  u64 value, size;
} Symbol;

static u32 gnu_hash(const char *s)
{
  u32 h = 5381;
  while (*s)
    h = h * 33 + (u8)*s++;
  return h;
}

static u64 find_symbol(u64 base, const char *name)
{
  const u8 *elf = (const u8 *)base;
  if (memcmp(elf, "\177ELF\2", 5))
    return 0;
  const u64 *dynamic = NULL;
  const u8 *segment = elf + *(const u64 *)(elf + 32);
  for (int i = *(const u16 *)(elf + 56); i > 0; i--, segment += 56)
    if (*(const u32 *)segment == 2)
      dynamic = (const u64 *)((*(const u16 *)(elf + 16) == 3 ? base : 0) + *(const u64 *)(segment + 16));
  u64 symbols = 0, strings = 0, table = 0;
  for (; dynamic && dynamic[0]; dynamic += 2) {
    u64 value = dynamic[1] < base ? dynamic[1] + base : dynamic[1]; /* the loader has relocated it, or not */
    if (dynamic[0] == 6) symbols = value;
    if (dynamic[0] == 5) strings = value;
    if (dynamic[0] == 0x6ffffef5) table = value;
  }
  if (!symbols || !strings || !table)
    return 0;
  const u32 *head = (const u32 *)table, *buckets = head + 4 + 2 * head[2], *chain = buckets + head[0];
  u32 wanted = gnu_hash(name), i = buckets[wanted % head[0]];
  if (i < head[1])
    return 0;
  for (;; i++) {
    u32 h = chain[i - head[1]];
    const Symbol *s = (const Symbol *)symbols + i;
    const char *text = (const char *)strings + s->name;
    if ((h | 1) == (wanted | 1) && s->section && text_starts(text, name) && text_length(text) == text_length(name))
      return (*(const u16 *)(elf + 16) == 3 ? base : 0) + s->value;
    if (h & 1)
      return 0;
  }
}

/* A new region of code: is it an interpreter's? */
void imports_look(const Region *r)
{
  if (count_imports || import_function)
    return;
  const char *base = r->path;
  for (const char *p = r->path; *p; p++)
    if (*p == '/')
      base = p + 1;
  if (text_starts(base, "python") || text_starts(base, "libpython"))
    import_function = find_symbol(r->start - r->offset, "PyImport_ImportModuleLevelObject");
}

/* ---- pausing ---- */

static u64 cycles(void)
{
  u32 low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return (u64)high << 32 | low;
}

void engine_import(Context *c)
{
  u64 *top = (u64 *)c->r[RSP];
  c->resume = *top;
  *top = (u64)resume_import;
  c->paused_at = cycles();
  signals_unwatch();
  c->importing = 1;
  c->native = 1;
  c->next = import_function;
}

static void follow_new_threads(void)
{
  u8 entries[4096];
  long fd = SYS(257, -100, "/proc/self/task", 0x90000 /* directory, close on exec */), n;
  if (fd < 0)
    return;
  while ((n = SYS(217 /* getdents64 */, fd, entries, sizeof entries)) > 0)
    for (long at = 0; at < n; at += *(u16 *)(entries + at + 16)) {
      const char *name = (const char *)entries + at + 19;
      u32 tid = 0;
      for (; *name >= '0' && *name <= '9'; name++)
        tid = tid * 10 + (*name - '0');
      if (tid && follow_thread(tid) < 0)
        note("a thread that an import started could not be followed", tid);
    }
  SYS(3, fd);
}

void engine_resume(Context *c)
{
  c->exit = 0;
  c->target = c->resume;
  u32 pid = SYS0(GETPID);
  if (pid != c->pid) { /* it forked: this is the child */
    cache_fork();
    contexts_fork(c);
    ledger_fork(c);
    context_attach_slot(c, HOW_FORK);
  }
  c->native = c->importing = 0;
  ledger->imports++;
  signals_watch();
  if (cycles() - c->paused_at > SLOW) {
    regions_check();
    signals_open();
    altstack_take(c);
    follow_new_threads();
  }
  engine_dispatch(c);
}
