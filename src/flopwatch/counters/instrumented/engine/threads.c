/* One context for each thread: its registers at a border, its lookup table of indirect branches, its counters. */
#include "engine.h"

Context *contexts[MAX_CONTEXTS];
volatile u32 context_count;
volatile u32 stopping;

static int is_gone(Context *c)
{
  return SYS(234 /* tgkill */, c->pid, c->tid, 0) == -3 /* no such thread */;
}

static Context *reusable(void)
{
  for (u32 i = 0; i < context_count; i++) {
    Context *c = contexts[i];
    if (c && !c->last && __atomic_load_n(&c->alive, __ATOMIC_ACQUIRE) == 0 && is_gone(c)) {
      u32 dead = 0;
      if (__atomic_compare_exchange_n(&c->alive, &dead, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return c;
    }
  }
  return NULL;
}

Context *context_new(void)
{
  Context *c = reusable();
  if (!c) {
    long p = SYS(9, 0, CONTEXT_BYTES, 3, 0x4022, -1, 0);
    if (p < 0 && p > -4096)
      return NULL;
    c = (Context *)p;
    u32 n = __atomic_fetch_add(&context_count, 1, __ATOMIC_ACQ_REL);
    if (n >= MAX_CONTEXTS)
      return NULL;
    contexts[n] = c;
  }
  memset(c, 0, offsetof(Context, last));
  c->self = (u64)c;
  c->stack = (u64)c + TAGS_OFFSET - 64;
  c->gate_dispatch = (u64)gate_dispatch;
  c->gate_syscall = (u64)gate_syscall;
  c->gate_cpuid = (u64)gate_cpuid;
  c->gate_check = (u64)gate_check;
  c->gate_cloned = (u64)gate_cloned;
  c->gate_import = (u64)gate_import;
  c->alive = 1;
  return c;
}

int context_attach_slot(Context *c, enum How how)
{
  u64 n = __atomic_fetch_add(&ledger->threads, 1, __ATOMIC_ACQ_REL);
  if (n >= MAX_THREADS) {
    ledger->threads = MAX_THREADS;
    ledger->overflow++;
    n = MAX_THREADS - 1; /* the last slot holds all further threads; said to be partial */
  }
  c->slot = (u32)n;
  c->tid = SYS(GETTID);
  c->pid = SYS(GETPID);
  c->native = 0;
  if (!ledger_map_area(c))
    return 0;
  LedgerThread *t = &ledger_threads()[n];
  t->tid = c->tid, t->pid = c->pid, t->how = how, t->state = THREAD_RUNNING;
  SYS(157 /* prctl */, 16 /* get name */, t->name);
  return 1;
}

void context_enter(Context *c) { SYS(158 /* arch_prctl */, 0x1001 /* set gs */, c); }

void context_end(Context *c)
{
  LedgerThread *t = &ledger_threads()[c->slot];
  SYS(157, 16, t->name); /* programs name their threads after they have begun */
  t->state = THREAD_ENDED;
  __atomic_store_n(&c->alive, 0, __ATOMIC_RELEASE);
}

void contexts_fork(Context *survivor)
{
  for (u32 i = 0; i < context_count; i++)
    if (contexts[i] != survivor && contexts[i]) {
      SYS(11 /* munmap */, contexts[i], CONTEXT_BYTES);
      contexts[i] = NULL;
    }
  contexts[0] = survivor;
  context_count = 1;
}

Context *current_or_null(void)
{
  Context *c = NULL;
  SYS(158, 0x1004 /* get gs */, &c);
  /* A thread that was made by native code has its maker's gs. */
  return c && c->tid == (u32)SYS0(GETTID) ? c : NULL;
}
