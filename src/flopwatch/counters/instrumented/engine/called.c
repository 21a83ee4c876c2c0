/* Counting inside a running process: the library's own calls, and threads caught by a signal. */
#include "engine.h"

typedef struct LogEntry {
  u32 label, slot;
  u64 index; /* of a block; from 1 << 32 on, of a lane counter */
  u64 count;
} LogEntry;

#define LOG_BYTES (1ul << 30)
static LogEntry *log_start;
static u64 log_count;
static u32 *places; /* 1 + the log's index of what has a sum already, found by its hash */
static u64 place_count; /* a power of two */
static int capturing;
static u32 away; /* since nothing was followed, code may have come and gone */

static void *room(size_t bytes)
{
  long p = SYS(9, 0, bytes, 3, 0x4022, -1, 0);
  return p < 0 && p > -4096 ? NULL : (void *)p;
}

API int flopwatch_open(const u8 *filter)
{
  if (ledger)
    return 0;
  memcpy(interesting, filter, sizeof interesting);
  log_start = room(LOG_BYTES);
  return log_start && ledger_open(NULL, HOW_CALLED) && cache_open() ? 0 : -12;
}

static void come_back(void)
{
  stopping = 0;
  if (away)
    regions_check();
  away = 0;
}

int engine_begin(void)
{
  Context *c = current_or_null();
  come_back();
  if (c && !c->native)
    return -16; /* is followed already */
  if (!c && !(c = start(HOW_CALLED)))
    return -12;
  if (!c->last && !(c->last = room(COUNTERS_BYTES + LANES_BYTES)))
    return -12;
  altstack_take(c);
  c->native = 0;
  ledger_threads()[c->slot].state = THREAD_RUNNING;
  if (!signals_taken)
    signals_open();
  return 0;
}

/* Runs in the thread to be followed: it goes on translated where the signal met it. */
static void capture(int signal, void *info, void *uc)
{
  u64 *rip = (u64 *)((u8 *)uc + 168);
  Context *c = current_or_null();
  (void)signal, (void)info;
  if ((c && (!c->native || c->importing)) || in_engine(*rip) || in_cache(*rip))
    return;
  if (!c && !(c = start(HOW_ATTACH)))
    return;
  if (log_start && !c->last)
    c->last = room(COUNTERS_BYTES + LANES_BYTES);
  c->native = 0;
  ledger_threads()[c->slot].state = THREAD_RUNNING;
  c->target = *rip;
  *rip = (u64)enter_translation;
}

static int free_signal(void)
{
  u64 action[4];
  for (int s = 64; s > 34; s--)
    if (SYS(13, s, NULL, action, 8) == 0 && action[0] == 0)
      return s;
  return 0;
}

static int is_followed(u32 tid)
{
  for (u32 i = 0; i < context_count; i++)
    if (contexts[i] && contexts[i]->tid == tid && contexts[i]->alive && (!contexts[i]->native || contexts[i]->importing))
      return 1;
  return 0;
}

/* Follows another thread of this process. 0, or an error: it blocks the signal, or is gone. */
int follow_thread(u32 tid)
{
  if (is_followed(tid))
    return 0;
  u64 ours[4] = {(u64)capture, 4 | 0x04000000 | 0x10000000 /* siginfo, restorer, restart */, (u64)restorer, ~0ul}, before[4];
  if (!capturing && !(capturing = free_signal()))
    return -16;
  SYS(13, capturing, ours, before, 8);
  long pid = SYS(GETPID), ret = SYS(234, pid, tid, capturing);
  for (int i = 0; ret == 0 && i < 2000 && !is_followed(tid); i++) {
    u64 pause[2] = {0, 500000};
    SYS(35 /* nanosleep */, pause, NULL);
  }
  if (ret == 0 && !is_followed(tid))
    ret = -110;
  if (ret != -110)
    SYS(13, capturing, before, NULL, 8); /* a signal still on its way must find our handler */
  return (int)ret;
}

/* The signal that catches threads; those that block it cannot be followed. 0: none is free. */
API int flopwatch_signal(void)
{
  if (!capturing)
    capturing = free_signal();
  return capturing;
}

API int flopwatch_follow(u32 tid)
{
  come_back();
  return follow_thread(tid);
}

/* All threads leave at their next system call or unlinked branch; handlers are the program's own again. */
API void flopwatch_stop(void)
{
  stopping = 1;
  lookups_forget();
  lock_cache();
  regions_unguard();
  unlock_cache();
  signals_close();
  away = 1;
}

static u32 *place_of(u32 label, u32 slot, u64 index)
{
  u64 h = (index * 0x9E3779B97F4A7C15ul ^ ((u64)label << 32 | slot)) * 0xC2B2AE3D27D4EB4Ful;
  for (u64 i = h >> 32;; i++) {
    u32 *place = &places[i & (place_count - 1)];
    const LogEntry *e = log_start + *place - 1;
    if (!*place || (e->index == index && e->label == label && e->slot == slot))
      return place;
  }
}

static void forget_places(void)
{
  if (places)
    SYS(11 /* munmap */, places, place_count * sizeof *places);
  places = NULL;
  place_count = 0;
}

static int more_places(void)
{
  u64 count = place_count ? 2 * place_count : 4096;
  u32 *new = room(count * sizeof *places);
  if (!new)
    return 0;
  forget_places();
  places = new, place_count = count;
  for (u64 i = 0; i < log_count; i++)
    *place_of(log_start[i].label, log_start[i].slot, log_start[i].index) = (u32)i + 1;
  return 1;
}

/* The log holds one sum for each label, thread and block, so that it does not grow with time. */
static void add(u32 label, u32 slot, u64 index, u64 count)
{
  if (2 * (log_count + 1) > place_count && !more_places()) {
    ledger->overflow++;
    return;
  }
  u32 *place = place_of(label, slot, index);
  if (*place) {
    log_start[*place - 1].count += count;
  } else if ((log_count + 1) * sizeof(LogEntry) < LOG_BYTES) {
    log_start[log_count++] = (LogEntry){label, slot, index, count};
    *place = (u32)log_count;
  } else {
    ledger->overflow++;
  }
}

static void settle(Context *c, u32 label, const u64 *now, u64 *last, u64 n, u64 base)
{
  for (u64 i = 0; i < n; i++) {
    u64 seen = __atomic_load_n(&now[i], __ATOMIC_RELAXED); /* the thread may be counting on */
    if (seen != last[i]) {
      add(label, c->slot, base + i, seen - last[i]);
      last[i] = seen;
    }
  }
}

/* Everything that the followed threads executed since the last settlement belongs to `label`. */
API void flopwatch_settle(u32 label)
{
  u64 blocks = ledger->blocks, lanes = ledger->lanes;
  for (u32 i = 0; i < context_count; i++) {
    Context *c = contexts[i];
    if (!c)
      continue;
    if (!c->last && !(c->last = room(COUNTERS_BYTES + LANES_BYTES)))
      continue;
    settle(c, label, counters_of(c), c->last, blocks, 0);
    settle(c, label, lanes_of(c), c->last + MAX_BLOCKS, lanes, 1ul << 32);
  }
}

/* What was executed while nobody counted (threads that are still on their way out) belongs to no label. */
API void flopwatch_discard(void)
{
  flopwatch_settle(0);
  log_count = 0;
  forget_places();
}

API void *flopwatch_ledger(void) { return ledger; }
API LogEntry *flopwatch_log(void) { return log_start; }
API u64 flopwatch_log_length(void) { return log_count; }
API int flopwatch_is_followed(u32 tid) { return is_followed(tid); }
API int flopwatch_decode(const u8 *code, u64 address, Instruction *out) { return decode(code, address, out); }
