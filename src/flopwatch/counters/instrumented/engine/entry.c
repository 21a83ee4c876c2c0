/* How the engine gets hold of a process: preloaded into a new image, or called from inside. */
#include "engine.h"

static const char variable[] = "FLOPWATCH_LEDGER=", preload[] = "LD_PRELOAD=";
char own_path[512];

/* ---- preloaded ---- */

static void take_out(char **envp, int at)
{
  memset(envp[at], 0, text_length(envp[at])); /* from /proc/PID/environ too */
  for (; envp[at]; at++)
    envp[at] = envp[at + 1];
}

/* Takes our two variables out of the environment before the program looks; what the user preloads stays. Returns 0 if they are not there.
 * They come last, so that the kernel can be told of an environment that ends before them (it agrees for root only). */
static int scrub(char **envp, char *directory, size_t size)
{
  u64 end = 0;
  for (int i = 0; envp[i]; i++)
    if (text_starts(envp[i], variable)) {
      char *value = envp[i] + sizeof variable - 1;
      if (text_length(value) >= size)
        return 0;
      text_add(directory, value);
      end = (u64)envp[i];
      take_out(envp, i--);
    } else if (text_starts(envp[i], preload)) {
      char *value = envp[i] + sizeof preload - 1, *rest = value;
      while (*rest && *rest != ':' && *rest != ' ')
        rest++;
      if ((size_t)(rest - value) < sizeof own_path) {
        memcpy(own_path, value, rest - value);
        own_path[rest - value] = 0;
      }
      if (*rest) {
        size_t kept = text_length(rest + 1) + 1;
        memcpy(value, rest + 1, kept);
        memset(value + kept, 0, rest + 1 - value);
        end = 0;
      } else {
        take_out(envp, i--);
      }
    }
  if (end)
    SYS(157 /* prctl */, 35 /* PR_SET_MM */, 11 /* PR_SET_MM_ENV_END */, end, 0, 0);
  return directory[0] != 0;
}

int read_filter(const char *directory)
{
  char path[600];
  text_add(text_add(path, directory), "/filter");
  long fd = SYS(257, -100, path, 0x80000);
  if (fd < 0)
    return 0;
  u8 all; /* whether imports count too */
  long n = SYS(0, fd, interesting, sizeof interesting), m = SYS(0, fd, &all, 1);
  SYS(3, fd);
  count_imports = m == 1 ? all : 1;
  return n == sizeof interesting;
}

/* Stderr is the program's own, so it is said in a byte that is there even where the disk is full. */
static void say_failed(const char *directory)
{
  char path[600];
  text_add(text_add(path, directory), "/filter");
  long fd = SYS(257, -100, path, 0x80001 /* write */);
  SYS(18 /* pwrite64 */, fd, "\1", 1, sizeof interesting + 1);
  SYS(3, fd);
}

Context *start(enum How how)
{
  Context *c = context_new();
  if (!c || !context_attach_slot(c, how))
    return NULL;
  context_enter(c);
  altstack_take(c);
  return c;
}

int engine_preloaded(int argc, char **argv, char **envp)
{
  (void)argc, (void)argv;
  if (!envp)
    return 0;
  char directory[512] = "";
  if (!scrub(envp, directory, sizeof directory) || !read_filter(directory))
    return 0;
  if (!ledger_open(directory, HOW_SPAWN) || !cache_open() || !start(HOW_SPAWN)) {
    say_failed(directory);
    return 0;
  }
  signals_open();
  return 1;
}

static void keep_end(char *to, size_t size, const char *path)
{
  size_t length = path ? text_length(path) : 0;
  text_add(to, length < size ? path ? path : "" : path + length - (size - 1));
}

/* The new image of an execve must find us: the environment gets our two variables back. */
void follow_child_of_exec(Context *c)
{
  int at = c->r[RAX] == 322;
  if (!ledger_directory[0]) { /* counting inside one process: what it starts is not in it, and said to be missing */
    if (c->shares_memory && !c->told++)
      __atomic_fetch_add(&ledger->lost_children, 1, __ATOMIC_RELAXED);
    return;
  }
  u64 *r = c->r;
  char **envp = (char **)r[at ? R10 : RDX];
  size_t n = 0, bytes = 8192;
  for (; envp && envp[n]; n++)
    if (text_starts(envp[n], preload))
      bytes += text_length(envp[n]);
  bytes += (n + 3) * sizeof(char *);
  bytes = (bytes + 4095) & ~4095ul;
  long p = SYS(9, 0, bytes, 3, 0x22, -1, 0);
  if (p < 0 && p > -4096) {
    note("no memory to follow an exec", 0);
    return;
  }
  char **list = (char **)p, *text = (char *)(list + n + 3);
  size_t used = 0;
  char *own = text;
  text = text_add(text_add(text, variable), ledger_directory) + 1;
  char *loaded = text;
  text = text_add(text_add(text, preload), own_path);
  for (size_t i = 0; i < n; i++)
    if (text_starts(envp[i], preload))
      text = text_add(text_add(text, ":"), envp[i] + sizeof preload - 1);
    else
      list[used++] = envp[i];
  list[used++] = own;
  list[used++] = loaded;
  list[used] = NULL;
  if (SYS(21 /* access */, own_path, 4) < 0)
    list = envp; /* whoever counted is gone, or out of reach: what is started from here on is left alone */
  const char *path = (const char *)r[at ? RSI : RDI];
  LedgerThread *thread = &ledger_threads()[c->slot];
  if (c->shares_memory) {
    keep_end(thread->executing, sizeof thread->executing, path);
    thread->state = THREAD_EXEC;
  } else {
    keep_end(ledger->executing, sizeof ledger->executing, path);
    ledger->state = STATE_EXEC;
  }
  /* A signal that is kept is blocked, and the new image would inherit that: it is taken first, then all this is done again. */
  long ret = at ? unless_signalled(&c->masked, 322, r[RDI], r[RSI], r[RDX], (long)list, r[R8])
                : unless_signalled(&c->masked, 59, r[RDI], r[RSI], (long)list, 0, 0);
  if (ret == -7 /* too long: perhaps only with what we have added; a ledger that never comes tells of it */)
    ret = SYS(r[RAX], r[RDI], r[RSI], r[RDX], r[R10], r[R8]);
  if (!c->shares_memory)
    ledger->state = STATE_RUNNING;
  thread->state = THREAD_RUNNING;
  SYS(11, p, bytes);
  Pause *pause = (Pause *)c->exit;
  if (ret == SIGNALLED) {
    c->next = pause->resume - PAUSE_BYTES;
    return;
  }
  r[RAX] = (u64)ret;
  c->next = pause->after;
}
