/* Handlers run translated too.
 *
 * The kernel sees one handler, ours. Where the signal met translated code, the program's handler is run as a nested piece of translation
 * on the stack that the kernel chose, and returns through the kernel as usual, or never, if it jumps away. Where it met the engine
 * itself, it is kept, everything else is blocked, and it is sent again when the engine leaves (gate_return).
 * The kernel blocks every signal while ours runs; the mask that the program asked for is set when its handler begins.
 */
#include "engine.h"

typedef struct Action {
  u64 handler, flags, restorer, mask;
} Action;

#define SIGILL 4
#define SIGBUS 7
#define SIGFPE 8
#define SIGSEGV 11
#define BLOCK_BYTES (128 * 15) /* a block is at most as long */
#define SA_SIGINFO 4u
#define SA_RESTORER 0x04000000u
#define SA_NODEFER 0x40000000u
#define SA_RESETHAND 0x80000000u
#define SIG_SETMASK 2
#define UC_RIP 168
#define UC_RSP 160
#define UC_ERROR 192 /* of a page fault, as the processor gives it */
#define UC_MASK 296

static Action common[65];
volatile u32 signals_taken;
static u32 guarding; /* writable code, see regions.c */
static u32 watching;
static const u8 faults[] = {SIGILL, SIGBUS, SIGFPE, SIGSEGV};

static Action *actions_of(const Context *c) { return c && c->actions ? c->actions : common; }

int signals_apart(Context *parent, Context *child)
{
  if (!child->own_actions) {
    long p = SYS(9 /* mmap */, 0, sizeof common, 3, 0x22, -1, 0);
    if (p < 0 && p > -4096)
      return 0;
    child->own_actions = (void *)p;
  }
  memcpy(child->own_actions, actions_of(parent), sizeof common);
  child->actions = child->own_actions;
  return 1;
}

static int is_function(u64 handler) { return handler > 1; }

static int is_fatal(int signal) { return signal == SIGILL || signal == SIGBUS || signal == SIGFPE || signal == SIGSEGV; }
static int is_watched(int signal) { return watching && is_fatal(signal); }

static long set_action(int signal, const Action *act, Action *old) { return SYS(13, signal, act, old, 8); }

long signal_action(Context *c, int signal, const void *act_, void *old_, u64 size)
{
  const Action *act = act_;
  Action *old = old_, before, *actions = actions_of(c);
  if (size != 8 || signal < 1 || signal > 64)
    return SYS(13, signal, act, old, size);
  before = actions[signal];
  Action ours, seen;
  long ret;
  if (act) {
    Action wanted = act->handler == (u64)engine_signal ? before : *act; /* native code had asked, and gives back what it was told */
    ours = wanted;
    if (is_function(wanted.handler) || (!wanted.handler && is_watched(signal))) {
      ours.handler = (u64)engine_signal;
      ours.flags = (wanted.flags & ~(u64)SA_RESETHAND) | SA_RESTORER | SA_SIGINFO; /* one that is kept must find a handler again */
      ours.mask = ~0ul;
      ours.restorer = (u64)restorer;
    }
    actions[signal] = wanted;
    ret = set_action(signal, &ours, &seen);
    if (ret < 0)
      actions[signal] = before;
  } else {
    ret = set_action(signal, NULL, &seen);
  }
  if (ret == 0 && old)
    *old = seen.handler == (u64)engine_signal ? before : seen;
  return ret;
}

/* Faults come to us even if the program has no handler: to guard writable code, and to count exactly what ran before the end. */
void signals_watch(void)
{
  watching = 1;
  for (u32 i = 0; i < sizeof faults; i++) {
    Action a;
    if (set_action(faults[i], NULL, &a) == 0 && a.handler == 0)
      signal_action(NULL, faults[i], &a, NULL, 8);
  }
}

/* Native code is about to run that may ask for handlers: it sees the program's own. */
void signals_unwatch(void)
{
  watching = 0;
  for (u32 i = 0; i < sizeof faults; i++)
    if (!common[faults[i]].handler && !(faults[i] == SIGSEGV && guarding))
      set_action(faults[i], &common[faults[i]], NULL);
}

void signals_guard(void)
{
  guarding = 1;
  if (!watching)
    signals_watch();
}

/* Handlers that were installed before the engine came are wrapped where they stand. */
void signals_open(void)
{
  for (int s = 1; s <= 64; s++) {
    Action a;
    if (set_action(s, NULL, &a) == 0 && a.handler != (u64)engine_signal && is_function(a.handler))
      signal_action(NULL, s, &a, NULL, 8);
  }
  signals_watch();
  signals_taken = 1;
}

void signals_close(void)
{
  for (int s = 1; s <= 64; s++) {
    Action a;
    if (set_action(s, NULL, &a) == 0 && a.handler == (u64)engine_signal)
      set_action(s, &common[s], NULL);
  }
  signals_taken = guarding = watching = 0;
}

static int is_fault(int signal, const void *info)
{
  int code = ((const int *)info)[2];
  return (signal == 11 || signal == 7 || signal == 4 || signal == 8 || signal == 5) && code > 0 && code != 0x80;
}

static void keep(Context *c, void *info, u8 *uc)
{
  u64 *mask = (u64 *)(uc + UC_MASK);
  if (c->pending_count < MAX_PENDING)
    memcpy(c->pending[c->pending_count++], info, 128);
  else
    note("a signal was lost, too many at once", ((int *)info)[0]);
  if (!c->masked) {
    c->mask = *mask;
    c->masked = 1;
  }
  *mask = ~0ul;
}

/* Signals are blocked here, so that they wait in the kernel. */
static void send_again(Context *c)
{
  for (u32 i = 0; i < c->pending_count; i++)
    SYS(297 /* rt_tgsigqueueinfo */, c->pid, c->tid, ((int *)c->pending[i])[0], c->pending[i]);
  c->pending_count = 0;
  c->masked = 0;
}

void deliver_pending(Context *c)
{
  send_again(c);
  c->next2 = c->next;
  c->next = unblock_entry;
}

static void meets_engine(Context *c, void *info, u8 *uc)
{
  u64 *rip = (u64 *)(uc + UC_RIP);
  keep(c, info, uc);
  if (*rip >= (u64)gate_return && *rip < (u64)gate_return_end) {
    *rip = (u64)gate_return;
    *(u64 *)(uc + UC_RSP) = c->stack;
  } else if (*rip >= (u64)unless_signalled && *rip < (u64)unless_signalled_end) {
    *rip = (u64)unless_signalled_not;
  }
}

static void set_mask(u64 mask) { SYS(14 /* rt_sigprocmask */, SIG_SETMASK, &mask, NULL, 8); }

static void begin_handler(Action *actions, int signal, const u8 *uc)
{
  Action a = actions[signal];
  if (a.flags & SA_RESETHAND) {
    actions[signal].handler = 0; /* here, since the kernel must find ours again for a signal that is kept */
    if (!is_watched(signal)) {
      Action plain = {0, SA_RESTORER, (u64)restorer, 0};
      set_action(signal, &plain, NULL);
    }
  }
  set_mask(*(const u64 *)(uc + UC_MASK) | a.mask | (a.flags & SA_NODEFER ? 0 : 1ul << (signal - 1)));
}

/* The signal came when the mask was restored: as if it came where the thread goes on then. */
static void leave_unblocking(const Context *c, u8 *uc)
{
  static const u8 places[7] = {144 /* rax */, 104 /* rdi */, 112 /* rsi */, 136 /* rdx */, 56 /* r10 */, 64 /* r11 */, 152 /* rcx */};
  for (int i = 0; i < 7; i++)
    memcpy(uc + places[i], &c->u[i], 8);
  *(u64 *)(uc + UC_RIP) = c->next2;
}

/* A write met the protection of code: it is done again, without. Did it change the very block that it is in, that is left. */
static int rewrites_code(Context *c, u64 *rip, u64 address)
{
  u64 inside = *rip;
  if (!region_written(address))
    return 0;
  const Translation *t = c && !c->native && in_cache(inside) ? translation_at(inside) : NULL;
  if (t && address + 64 > t->pc && address < t->pc + BLOCK_BYTES) {
    region_step(address);
    c->target = application_pc(inside);
    cut(c, inside, c->target);
    *rip = (u64)enter_translation;
  }
  return 1;
}

void engine_signal(int signal, void *info, void *uc_)
{
  u8 *uc = uc_;
  u64 *rip = (u64 *)(uc + UC_RIP);
  Context *c = current_or_null();
  if (signal == SIGSEGV && ((int *)info)[2] == 2 /* no permission */ && (*(u64 *)(uc + UC_ERROR) & 2 /* to write */) && rewrites_code(c, rip, ((u64 *)info)[2]))
    return;
  if (signal == SIGBUS && ((int *)info)[2] == 2 /* nothing behind the address */ && ledger_full(((u64 *)info)[2]))
    return;
  Action *actions = actions_of(c), a = actions[signal];
  if (!is_function(a.handler) && is_fatal(signal)) { /* what would have happened */
    if (c && !c->native && in_cache(*rip) && is_fault(signal, info))
      cut(c, *rip, application_pc(*rip));
    Action plain = {0, SA_RESTORER, (u64)restorer, 0};
    set_action(signal, &plain, NULL);
    if (!is_fault(signal, info))
      SYS(297 /* rt_tgsigqueueinfo */, SYS0(GETPID), SYS0(GETTID), signal, info);
    return;
  }
  if (!c || c->native) {
    if (is_function(a.handler)) {
      begin_handler(actions, signal, uc);
      ((void (*)(int, void *, void *))a.handler)(signal, info, uc);
    }
    return;
  }
  if (in_engine(*rip)) {
    if (is_fault(signal, info)) {
      note("the engine itself failed at text offset", *rip - (u64)__ehdr_start);
      Action plain = {0, SA_RESTORER, (u64)restorer, 0};
      set_action(signal, &plain, NULL);
      return;
    }
    meets_engine(c, info, uc);
    return;
  }
  if (!is_function(a.handler))
    return;
  begin_handler(actions, signal, uc);
  if (*rip >= unblock_entry && *rip < unblock_end)
    leave_unblocking(c, uc);
  u64 inside = *rip, shown = in_cache(inside) ? application_pc(inside) : 0;
  Cut made = {NULL, NULL};
  if (shown) {
    *rip = shown; /* handlers look at it, and at what lies there */
    if (is_fault(signal, info) && ((u64 *)info)[2] == inside)
      ((u64 *)info)[2] = shown;
    made = cut(c, inside, shown);
  } else {
    shown = inside;
  }
  u32 entered = altstack_enter(c, (u64)uc);
  run_nested(c, a.handler, signal, info, uc);
  set_mask(~0ul);
  c->alt_entered = entered; /* the kernel remembers it when it takes the frame away */
  send_again(c); /* what came while the handler ended */
  if (*rip == shown && in_cache(inside)) {
    cut_undo(made);
    *rip = inside;
  } else { /* the handler chose another place to go on, or put something there */
    c->target = *rip;
    *rip = (u64)enter_translation;
  }
}
