/* Counting in a process that is running already.
 *
 * The host has stopped every thread, has mapped the engine, and calls these functions on one of the threads, natively, on a stack of their
 * own. It gives each thread the registers that it is told here and lets it go on. Nothing here may look at gs: it is another thread's, or nobody's.
 */
#include "engine.h"

enum { BUSY = -16, OUT_OF_MEMORY = -12, NO_LEDGER = -13, NO_FILTER = -2, AGAIN = -11 };

/* Where a thread that was stopped in a system call goes on: right behind an instruction that the kernel can go back to, so that
 * the kernel itself restarts the call or ends it with EINTR, as it would have done without us. */
static u64 behind_call;

static void emit_behind_call(void)
{
  u8 *stub = stub_alloc(32), *saved = emit;
  emit = stub;
  e1(0x0F), e1(0x05); /* syscall */
  behind_call = (u64)emit;
  emit_store(RAX, C_S0);
  e1(0xB8), e4(0); /* mov eax, 0: no exit record, go on at context->target */
  emit_jump_slot(C_GATE_DISPATCH);
  emit = saved;
}

static int is_inside(u64 rip) { return in_cache(rip) || in_engine(rip); }

/* Contexts of threads that have ended natively since an earlier attachment, or were another process's before a fork. */
static void forget_dead_threads(void)
{
  u32 pid = SYS(GETPID);
  for (u32 i = 0; i < context_count; i++) {
    Context *c = contexts[i];
    if (c && c->alive && (c->pid != pid || SYS(234 /* tgkill */, pid, c->tid, 0) == -3)) {
      c->pid = pid, c->tid = 0x7fffffff;
      c->alive = 0;
    }
  }
}

static int open_ledger(const char *directory)
{
  LedgerHeader *old = ledger;
  if (!ledger_open(directory, HOW_ATTACH)) {
    ledger = old;
    return NO_LEDGER;
  }
  if (old) { /* threads that are still on their way out know it by its place */
    SYS(25 /* mremap */, ledger, L_AREAS, L_AREAS, 3 /* may move, fixed */, old);
    ledger = old;
    return 0;
  }
  if (cache_open())
    return 0;
  SYS(11, ledger, L_AREAS);
  ledger = NULL;
  return OUT_OF_MEMORY;
}

/* Begins to count. `engine` is what programs that this one starts are to preload. With `empty`, no thread is inside the cache. */
API long flopwatch_attach(const char *directory, const char *engine, u32 empty)
{
  if (ledger && (!stopping || !ledger_directory[0]))
    return BUSY;
  if (!read_filter(directory))
    return NO_FILTER;
  text_add(own_path, engine);
  long failed = open_ledger(directory);
  if (failed)
    return failed;
  forget_dead_threads();
  lookups_forget();
  if (empty && behind_call && cache_reset())
    behind_call = 0;
  if (!behind_call)
    emit_behind_call();
  stopping = 0;
  signals_open();
  return 0;
}

API u64 flopwatch_is_inside(u64 rip) { return is_inside(rip); }

/* Whether gs points at a context of ours. */
API u64 flopwatch_knows(u64 gs)
{
  for (u32 i = 0; i < context_count; i++)
    if (contexts[i] && (u64)contexts[i] == gs)
      return 1;
  return 0;
}

static Context *context_of(u32 tid, u64 gs)
{
  for (u32 i = 0; i < context_count; i++)
    if (contexts[i] && (u64)contexts[i] == gs)
      return contexts[i]->tid == tid && contexts[i]->alive ? contexts[i] : NULL; /* a native clone has its parent's gs */
  return NULL;
}

static void name_thread(LedgerThread *t, u32 tid)
{
  char path[64], *end = text_add(path, "/proc/self/task/");
  text_add(text_add_number(end, tid), "/comm");
  memset(t->name, 0, sizeof t->name);
  long fd = SYS(257, -100, path, 0x80000);
  if (fd < 0)
    return;
  long n = SYS(0, fd, t->name, sizeof t->name);
  SYS(3, fd);
  for (long i = 0; i < n; i++)
    if (t->name[i] == '\n')
      t->name[i] = 0;
}

/* Follows thread `tid`, which is stopped at `rip`, right behind a system call if `calling`. Tells its gs and its rip from now on. */
API long flopwatch_adopt(u32 tid, u64 rip, u64 gs, u32 calling, u64 *gs_and_rip)
{
  Context *c = context_of(tid, gs);
  if (!c && is_inside(rip))
    return BUSY;
  if (!c && !(c = context_new()))
    return OUT_OF_MEMORY;
  if (!context_attach_slot(c, HOW_ATTACH))
    return OUT_OF_MEMORY;
  c->tid = tid; /* and not the thread that we are called on */
  LedgerThread *t = &ledger_threads()[c->slot];
  t->tid = tid;
  name_thread(t, tid);
  gs_and_rip[0] = (u64)c;
  gs_and_rip[1] = rip;
  if (is_inside(rip))
    return 0;
  c->target = rip;
  gs_and_rip[1] = calling ? behind_call : (u64)enter_translation;
  return 0;
}

/* The native place of a thread that sleeps in a system call of the translation, at `rip`, or 0: it must find its own way out. */
API u64 flopwatch_release(u32 tid, u64 rip, u64 gs)
{
  Context *c = context_of(tid, gs);
  u64 native = 0;
  if (!c || !in_cache(rip))
    return 0;
  if (rip == behind_call) {
    native = c->target;
  } else {
    u64 pc = application_pc(rip - 2);
    if (!pc || region_of(pc) < 0)
      return 0;
    Instruction i;
    for (int n = 0; n < 256 && !native && decode((const u8 *)pc, pc, &i); n++, pc += i.length)
      if (i.kind == K_SYSCALL)
        native = pc + i.length;
      else if (i.kind != K_PLAIN)
        return 0;
  }
  if (native && ledger_threads()[c->slot].state == THREAD_RUNNING)
    ledger_threads()[c->slot].state = THREAD_LEFT;
  c->native = 1;
  return native;
}

/* Between these two no thread is in the middle of a translation. */
API long flopwatch_freeze(void) { return try_lock_cache() ? 0 : AGAIN; }

/* Ends the counting: whichever thread is still inside leaves at its next block. */
API void flopwatch_detach(void)
{
  stopping = 1;
  lookups_forget();
  if (cache_left() > 64 * ledger->translated)
    for (u32 i = 0; i < ledger->regions; i++)
      translations_drop(i, 0, ~0ul);
  regions_unguard();
  signals_close();
  if (ledger->state == STATE_RUNNING)
    ledger->state = STATE_STOPPED;
  unlock_cache();
}
