/* Where translated blocks live, how they are found, linked and dropped.
 *
 * One region of memory holds everything, so that 32-bit branches reach: blocks grow from its start, cold stubs from its end.
 * Nothing is freed: code that goes away leaves its translation behind, cut off from everything that led to it.
 */
#include "engine.h"

#define CACHE_BYTES (1ul << 30)
#define TABLE_BITS 22
#define MAX_TRANSLATIONS (1u << 21)

typedef struct Slot {
  u64 pc, code, landing;
} Slot;

u8 *cache_start, *cache_end, *emit;
static u8 *stubs;
static Slot *table;
static Translation *translations;
static u32 translation_count = 1; /* 0 means none */
static u32 region_head[MAX_REGIONS];
static volatile u32 lock;
u64 unblock_entry, unblock_end, clone_entry;

static void *reserve(size_t bytes, int protection)
{
  long p = SYS(9 /* mmap */, 0, bytes, protection, 0x4022 /* private, anonymous, no reserve */, -1, 0);
  return p < 0 && p > -4096 ? NULL : (void *)p;
}

int cache_open(void)
{
  size_t bytes = CACHE_BYTES;
  while (!(cache_start = reserve(bytes, 7)) && bytes > (16 << 20))
    bytes /= 2;
  table = reserve(sizeof(Slot) << TABLE_BITS, 3);
  translations = reserve(sizeof(Translation) * MAX_TRANSLATIONS, 3);
  if (!cache_start || !table || !translations)
    return 0;
  cache_end = cache_start + bytes;
  emit = cache_start;
  stubs = cache_end;
  emit_common();
  return 1;
}

void cache_fork(void) { lock = 0; }

int cache_room(void) { return emit + (1 << 16) < stubs && translation_count + 64 < MAX_TRANSLATIONS; }

u8 *stub_alloc(size_t n)
{
  stubs -= n;
  stubs = (u8 *)((u64)stubs & ~15ul);
  return stubs;
}

void lock_cache(void)
{
  while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
    SYS(24 /* sched_yield */);
}

int try_lock_cache(void) { return !__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE); }

void unlock_cache(void) { __atomic_store_n(&lock, 0, __ATOMIC_RELEASE); }

/* ---- finding ---- */

static u32 hash(u64 pc) { return (u32)((pc * 0x9E3779B97F4A7C15ull) >> (64 - TABLE_BITS)); }

u64 lookup(u64 pc)
{
  for (u32 i = hash(pc);; i = (i + 1) & ((1u << TABLE_BITS) - 1)) {
    u64 key = __atomic_load_n(&table[i].pc, __ATOMIC_ACQUIRE);
    if (key == pc)
      return __atomic_load_n(&table[i].code, __ATOMIC_RELAXED);
    if (!key)
      return 0;
  }
}

static void table_put(u64 pc, u64 code)
{
  u32 i = hash(pc);
  while (table[i].pc && table[i].pc != pc)
    i = (i + 1) & ((1u << TABLE_BITS) - 1);
  table[i].code = code;
  table[i].landing = 0;
  __atomic_store_n(&table[i].pc, pc, __ATOMIC_RELEASE);
}

u32 translation_add(u64 pc, u64 code, u32 bytes, u32 region)
{
  u32 index = translation_count++;
  translations[index] = (Translation){pc, code, 0, region, region_head[region], bytes, 0, 0, NULL};
  region_head[region] = index;
  ledger->translated++;
  return index;
}

void translation_end(u32 index, u32 length, const u8 *layout)
{
  translations[index].layout = layout;
  translations[index].length = length;
}

static u32 published = 1;

/* Only when a whole chain of blocks is laid out may other threads find them: each falls into the next. */
void translations_publish(void)
{
  for (; published < translation_count; published++)
    table_put(translations[published].pc, translations[published].code);
}

void translation_counts(u32 index, u32 block, u64 counted) { translations[index].block = block, translations[index].counted = counted; }

const Translation *translation_at(u64 code)
{
  u32 low = 1, high = translation_count; /* emitted in rising order */
  while (low < high) {
    u32 middle = (low + high) / 2;
    if (translations[middle].code <= code)
      low = middle + 1;
    else
      high = middle;
  }
  return low == 1 || code >= (u64)stubs || !translations[low - 1].layout ? NULL : &translations[low - 1];
}

u64 application_pc(u64 code)
{
  const Translation *t = translation_at(code);
  if (!t)
    return 0;
  const u8 *layout = t->layout;
  u64 pc = t->pc, at = t->code + *layout++;
  if (code < at)
    return pc;
  for (; *layout; layout += 2) {
    at += layout[1];
    if (code < at)
      return pc;
    pc += layout[0];
  }
  return pc; /* behind it: a system call was the last */
}

/* ---- linking ---- */

static void patch4(u64 at, u64 to)
{
  i32 distance = (i64)(to - (at + 4));
  __atomic_store_n((i32 *)at, distance, __ATOMIC_RELAXED); /* never crosses a cache line: atomic on every x86-64 */
}

void link_exit(Exit *e, u64 code)
{
  if (e->patch)
    patch4(e->patch, code);
}

u8 *exit_stub(u64 target, u8 *patch)
{
  Exit *e = (Exit *)stub_alloc(sizeof(Exit));
  *e = (Exit){target, (u64)patch};
  u8 *stub = stub_alloc(32), *saved = emit;
  emit = stub;
  emit_store(RAX, C_S0);
  e1(0x48), e1(0x8D), e1(0x05), e4((u32)((u8 *)e - (emit + 4))); /* lea rax, [rip + e] */
  emit_jump_slot(C_GATE_DISPATCH);
  emit = saved;
  if (patch)
    patch4((u64)patch, (u64)stub);
  return stub;
}

/* Where indirect branches enter a translation: the registers that the lookup borrowed are put back first. */
static u64 landing(u64 pc, u64 code)
{
  u32 i = hash(pc);
  while (table[i].pc != pc)
    i = (i + 1) & ((1u << TABLE_BITS) - 1);
  u64 found = __atomic_load_n(&table[i].landing, __ATOMIC_ACQUIRE);
  if (found)
    return found;
  lock_cache();
  u8 *stub = stub_alloc(32), *saved = emit;
  emit = stub;
  emit_load(RAX, C_S0);
  emit_load(RDX, C_S2);
  emit_load(RCX, C_S1);
  emit_jump_to((u8 *)code);
  emit = saved;
  if (table[i].code == code)
    __atomic_store_n(&table[i].landing, (u64)stub, __ATOMIC_RELEASE);
  unlock_cache();
  return (u64)stub;
}

void ibl_set(Context *c, u64 pc, u64 code)
{
  u64 i = pc & ((1u << IBL_BITS) - 1), to = landing(pc, code);
  u64 *tag = (u64 *)((u8 *)c + TAGS_OFFSET) + i, *place = (u64 *)((u8 *)c + LANDINGS_OFFSET) + i;
  __atomic_store_n(tag, 0, __ATOMIC_RELEASE); /* a signal's nested run may look in between */
  __atomic_store_n(place, to, __ATOMIC_RELEASE);
  __atomic_store_n(tag, -pc, __ATOMIC_RELEASE);
}

/* Every indirect branch asks again. A thread may stand between the two reads of a lookup: landings must stay, only the addresses go. */
void lookups_forget(void)
{
  for (u32 i = 0; i < context_count; i++)
    if (contexts[i]) {
      u64 *tag = (u64 *)((u8 *)contexts[i] + TAGS_OFFSET);
      for (u64 k = 0; k < 1ul << IBL_BITS; k++)
        if (tag[k])
          tag[k] = -(k ^ 1); /* no address that is looked up here */
    }
}

/* ---- dropping ---- */

static void drop(Translation *t)
{
  if (lookup(t->pc) == t->code)
    table_put(t->pc, 0);
  u8 *stub = exit_stub(t->pc, NULL);
  union { u8 bytes[8]; u64 word; } head;
  memcpy(head.bytes, (void *)t->code, 8);
  i32 distance = (i64)(stub - (u8 *)(t->code + 5));
  head.bytes[0] = 0xE9;
  memcpy(head.bytes + 1, &distance, 4);
  __atomic_store_n((u64 *)t->code, head.word, __ATOMIC_RELAXED); /* blocks begin at multiples of 8 */
  t->bytes = 0;
}

void translations_drop(u32 region, u64 start, u64 end)
{
  u32 *link = &region_head[region];
  while (*link) {
    Translation *t = &translations[*link];
    if (t->pc < end && t->pc + t->bytes > start) {
      u32 next = t->next;
      drop(t);
      *link = next;
    } else {
      link = &t->next;
    }
  }
}

/* Part of a region becomes a region of its own. */
void translations_move(u32 from, u32 to, u64 start, u64 end)
{
  u32 *link = &region_head[from];
  while (*link) {
    u32 index = *link;
    Translation *t = &translations[index];
    if (t->pc >= start && t->pc < end) {
      *link = t->next;
      t->next = region_head[to];
      t->region = to;
      region_head[to] = index;
    } else {
      link = &t->next;
    }
  }
}

/* ---- starting again ---- */

u64 cache_left(void) { return (u64)(stubs - emit); }

/* A process that is attached to over and over would fill the cache; below one half it is left as it is. */
int cache_reset(void)
{
  if (cache_left() > (u64)(cache_end - cache_start) / 2 && translation_count < MAX_TRANSLATIONS / 2)
    return 0;
  SYS(28 /* madvise */, cache_start, cache_end - cache_start, 4 /* do not need: zeros from now on */);
  SYS(28, table, sizeof(Slot) << TABLE_BITS, 4);
  memset(region_head, 0, sizeof region_head);
  translation_count = published = 1;
  emit = cache_start;
  stubs = cache_end;
  emit_common();
  return 1;
}
