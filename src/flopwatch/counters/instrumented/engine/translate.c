/* A basic block -> its translation: the same instructions, with branches, far data and system calls rewritten, and a counter in front. */
#include "engine.h"

#define MAX_INSTRUCTIONS 128
#define MAX_CHAIN 16 /* blocks laid out one behind the other along their fall-through */

static int fetch(u64 pc, const Region *r, Instruction *out)
{
  if (pc + 15 <= r->end)
    return decode((const u8 *)pc, pc, out);
  u8 copy[16];
  memset(copy, 0, sizeof copy);
  u64 have = r->end - pc;
  if (region_of(r->end) >= 0)
    have = 15;
  memcpy(copy, (const void *)pc, have > 15 ? 15 : have);
  int n = decode(copy, pc, out);
  return n && (u64)n <= have ? n : 0;
}

static u8 *record(const Instruction *list, int n, u32 region)
{
  u64 at = list[0].address, bytes = list[n - 1].address + list[n - 1].length - at;
  u32 masked = 0;
  for (int k = 0; k < n; k++)
    masked += list[k].mask && is_interesting(&list[k]);
  if (ledger->blocks >= MAX_BLOCKS || ledger->code_bytes + bytes > CODE_BYTES || ledger->lanes + masked > MAX_LANES) {
    ledger->overflow++;
    return NULL;
  }
  LedgerBlock *b = &ledger_blocks()[ledger->blocks];
  b->address = at, b->code_at = (u32)ledger->code_bytes, b->length = (u16)bytes, b->masked = (u16)masked;
  b->first_lane = (u32)ledger->lanes, b->region = region;
  memcpy(ledger_code() + ledger->code_bytes, (const void *)at, bytes);
  u8 *made = emit_count(COUNTERS_OFFSET + 8 * (u32)ledger->blocks, list, n);
  ledger->code_bytes += bytes;
  ledger->lanes += masked;
  ledger->blocks++;
  return made;
}

static void emit_check(u64 pc, u64 bytes)
{
  Pause *p = emit_pause(C_GATE_CHECK, pc);
  u8 *copy = stub_alloc(bytes);
  memcpy(copy, (const void *)pc, bytes);
  p->bytes = (u64)copy, p->length = bytes;
}

static int scan(u64 pc, const Region *r, Instruction *list)
{
  int n = 0, most = r->writable == GUARD_STEP ? 1 : MAX_INSTRUCTIONS;
  do {
    Instruction *i = &list[n];
    if (pc >= r->end || !fetch(pc, r, i)) {
      if (n)
        break; /* the next block tells */
      i->address = pc, i->kind = K_UNSUPPORTED, i->length = 1;
    }
    pc += i->length;
    n++;
  } while (list[n - 1].kind == K_PLAIN && n < most);
  return n;
}

static u64 translate_one(u64 pc, int region_index)
{
  static Instruction list[MAX_INSTRUCTIONS];
  Region *r = &ledger_regions()[region_index];
  int n = scan(pc, r, list);
  if (r->writable == GUARD_PROTECT) { /* what was read before it was protected may have changed */
    for (u64 end = 0; end < list[n - 1].address + list[n - 1].length; n = scan(pc, r, list))
      region_protect(pc, end = list[n - 1].address + list[n - 1].length);
  }
  u64 at = list[n - 1].address + list[n - 1].length;
  int counted = 0;
  for (int k = 0; k < n; k++)
    counted |= is_interesting(&list[k]) && list[k].kind == K_PLAIN;

  emit_align();
  u32 index = translation_add(pc, (u64)emit, (u32)(at - pc), region_index);
  u8 *start = emit;
  if (r->writable >= GUARD_COMPARE)
    emit_check(pc, at - pc);
  if (pc == import_function && !count_imports)
    emit_pause(C_GATE_IMPORT, pc);
  u32 lane = (u32)ledger->lanes;
  u8 *recorded = counted && list[0].kind != K_UNSUPPORTED ? record(list, n, region_index) : NULL;
  if (recorded)
    translation_counts(index, (u32)ledger->blocks, (u64)recorded);
  if (emit == start && (list[0].kind != K_PLAIN || list[0].length < 5)) /* no thread may ever stand inside the jump that drop() puts here */
    e1(0x0F), e1(0x1F), e1(0x44), e1(0x00), e1(0x00);
  u64 falls = at;
  u8 *layout = stub_alloc(2 * n + 2), *next = layout;
  *next++ = (u8)(emit - start);
  for (int k = 0; k < n; k++) {
    u8 *begun = emit;
    const u8 *code = (const u8 *)list[k].address;
    if (list[k].kind == K_PLAIN) {
      if (recorded && list[k].mask && is_interesting(&list[k]))
        emit_active_lanes(&list[k], LANES_OFFSET + 8 * lane++);
      emit_plain(&list[k], code);
    } else {
      falls = emit_end(&list[k], code);
    }
    *next++ = list[k].length, *next++ = (u8)(emit - begun);
  }
  *next = 0;
  while (emit - start < 8)
    e1(0x90);
  translation_end(index, (u32)(emit - start), layout);
  return falls;
}

u64 translate(u64 pc)
{
  int region = region_of(pc);
  if (region < 0)
    return 0;
  if (!cache_room()) {
    ledger->overflow++;
    return 0;
  }
  u64 first = 0, falls = pc;
  for (int chain = 0; falls; chain++) {
    emit_align();
    u64 next_region = chain ? (u64)region_of(falls) : (u64)region;
    if (chain == MAX_CHAIN || (i64)(int)next_region < 0 || lookup(falls) || !cache_room()) {
      emit_exit(falls);
      break;
    }
    if (!first)
      first = (u64)emit;
    falls = translate_one(falls, (int)next_region);
  }
  translations_publish();
  return first;
}
