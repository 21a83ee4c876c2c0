/* What must be seen of the program's system calls: threads, processes, handlers, and code that comes and goes. */
#include "engine.h"

#define CLONE_VM 0x100u
#define CLONE_SIGHAND 0x800u
#define CLONE_VFORK 0x4000u

static void result(Context *c, long value)
{
  c->r[RCX] = ((Pause *)c->exit)->pc; /* as the kernel leaves them */
  c->r[R11] = c->flags;
  c->r[RAX] = (u64)value;
  c->next = ((Pause *)c->exit)->after;
}

/* The child gets its context before it exists; both sides come out of the call in the cache (emit_clone). */
static void clone_sharing(Context *c, u64 flags)
{
  Pause *p = (Pause *)c->exit;
  Context *child = context_new();
  if (!child) {
    note("no room for a thread's context", context_count);
    result(c, -11 /* try again */);
    return;
  }
  child->actions = c->actions;
  if (flags & CLONE_VFORK)
    child->alt_start = c->alt_start, child->alt_bytes = c->alt_bytes, child->alt_entered = c->alt_entered;
  if (!(flags & CLONE_SIGHAND) && !signals_apart(c, child))
    note("no room for a child's signal handlers", c->tid);
  child->after = p->after;
  child->starting = 1;
  child->parent_pid = c->pid;
  c->after = p->after;
  c->child = (u64)child;
  c->next = clone_entry;
}

void engine_cloned(Context *c)
{
  Context *child = (Context *)c->child;
  if ((i64)c->r[RAX] < 0) {
    child->pid = c->pid, child->tid = 0x7fffffff;
    child->alive = 0;
  } else {
    while (__atomic_load_n(&child->starting, __ATOMIC_ACQUIRE))
      SYS(24 /* sched_yield */);
  }
  c->next = c->after;
}

void engine_child(Context *c)
{
  u32 pid = SYS(GETPID);
  c->shares_memory = pid != c->parent_pid;
  context_attach_slot(c, c->shares_memory ? HOW_VFORK : HOW_SPAWN);
  c->r[RAX] = 0;
  c->next = c->after;
  __atomic_store_n(&c->starting, 0, __ATOMIC_RELEASE);
}

/* A clone that copies memory is made here: the child wakes on its copy of the engine's stack. */
static void clone_copying(Context *c, long number, u64 stack)
{
  u64 arguments[16];
  lock_cache();
  long ret;
  if (number == 435) {
    u64 size = c->r[RSI] < sizeof arguments ? c->r[RSI] : sizeof arguments;
    memcpy(arguments, (void *)c->r[RDI], size);
    stack = arguments[5] ? arguments[5] + arguments[6] : 0;
    arguments[5] = arguments[6] = 0;
    ret = SYS(435, arguments, size);
  } else if (number == 56) {
    ret = SYS(56, c->r[RDI], 0, c->r[RDX], c->r[R10], c->r[R8]);
  } else {
    ret = SYS(57);
  }
  if (ret == 0) {
    cache_fork();
    contexts_fork(c);
    ledger_fork(c);
    context_attach_slot(c, HOW_FORK);
    c->pending_count = 0; /* signals that wait are the parent's alone */
    c->shares_memory = 0;
    if (stack)
      c->r[RSP] = stack;
  } else {
    unlock_cache();
  }
  result(c, ret);
}

static void clone_any(Context *c, long number)
{
  u64 flags = number == 56 ? c->r[RDI] : number == 435 ? *(u64 *)c->r[RDI] : number == 58 ? CLONE_VM | CLONE_VFORK : 0;
  if (flags & CLONE_VM)
    clone_sharing(c, flags);
  else
    clone_copying(c, number, number == 56 ? c->r[RSI] : 0);
}

/* Made here, so that no thread translates what is about to change. */
static void change_mapping(Context *c, long number)
{
  u64 *r = c->r, start = r[RDI], bytes = (r[RSI] + 4095) & ~4095ul;
  int fresh = number == 9 && !(r[R10] & 0x10 /* fixed */);
  if (!fresh && number != 25 && !regions_overlap(start, start + bytes))
    return;
  lock_cache();
  if (!fresh)
    regions_forget(start, start + bytes);
  long ret = SYS(number, r[RDI], r[RSI], r[RDX], r[R10], r[R8], r[R9]);
  if ((fresh || number == 25) && (ret >= 0 || ret < -4095))
    regions_forget((u64)ret, (u64)ret + (fresh ? bytes : r[RDX]));
  unlock_cache();
  result(c, ret);
}

void engine_syscall(Context *c)
{
  Pause *p = (Pause *)c->exit;
  u64 *r = c->r;
  c->next = p->resume;
  if (UNLIKELY(c->alt_entered))
    altstack_remind(c);
  switch (r[RAX]) {
  case 9:   /* mmap */
  case 10:  /* mprotect */
  case 11:  /* munmap */
  case 25:  /* mremap */
  case 329: /* pkey_mprotect */
    change_mapping(c, (long)r[RAX]);
    break;
  case 0: case 17: case 45: /* read, pread, recvfrom */
    regions_receive(r[RSI], r[RDX]);
    break;
  case 19: case 295: case 327: /* readv, preadv, preadv2 */
    regions_receive_parts((const u64 *)r[RSI], r[RDX]);
    break;
  case 13: /* rt_sigaction */
    result(c, signal_action(c, (int)r[RDI], (const void *)r[RSI], (void *)r[RDX], r[R10]));
    break;
  case 15: /* rt_sigreturn, from a handler that had begun before this thread was followed */
    if (!stopping && !in_cache(*(u64 *)(r[RSP] + 168)) && !in_engine(*(u64 *)(r[RSP] + 168))) {
      c->target = *(u64 *)(r[RSP] + 168);
      *(u64 *)(r[RSP] + 168) = (u64)enter_translation;
    }
    break;
  case 56: case 57: case 58: case 435: /* clone, fork, vfork, clone3 */
    clone_any(c, (long)r[RAX]);
    break;
  case 59: case 322: /* execve, execveat */
    follow_child_of_exec(c);
    break;
  case 60: /* exit */
    context_end(c);
    break;
  case 131: /* sigaltstack */
    result(c, altstack_change(c, (const void *)r[RDI], (void *)r[RSI], r[RSP]));
    break;
  case 158: /* arch_prctl */
    if (r[RDI] == 0x1001) {
      note("the program asked for the gs register, which the engine uses", r[RSI]);
      result(c, -1);
    } else if (r[RDI] == 0x1004) {
      *(u64 *)r[RSI] = 0;
      result(c, 0);
    }
    break;
  case 231: /* exit_group */
    context_end(c);
    if (!c->shares_memory) {
      ledger->exit_code = (u32)r[RDI] & 0xFF;
      ledger->state = STATE_FINISHED;
    }
    break;
  }
  if (UNLIKELY(stopping) && c->next == p->resume) {
    /* leave natively, at the system call itself */
    ledger_threads()[c->slot].state = THREAD_LEFT;
    leave(c, p->pc - 2);
  }
}
