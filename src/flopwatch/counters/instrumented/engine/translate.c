/* A basic block -> its translation: the same instructions, with branches, far data and system calls rewritten, and a counter in front. */
#include "engine.h"

#define MAX_INSTRUCTIONS 128
#define MAX_CHAIN 16 /* blocks laid out one behind the other along their fall-through */

u8 interesting[1024];

static int is_interesting(const Instruction *i)
{
  u32 bit = i->opcode, row = i->encoding * 8 + i->map;
  return interesting[row * 32 + (bit >> 3)] >> (bit & 7) & 1;
}

/* ---- flags: is what the block finds in them overwritten before it is read? Only then may the counter use inc. ---- */

enum Flags { FLAGS_KEPT, FLAGS_OVERWRITTEN, FLAGS_READ };

static enum Flags flags_of(const Instruction *i)
{
  u8 op = i->opcode, reg = i->modrm_at ? (((u8 *)i->address)[i->modrm_at] >> 3) & 7 : 0;
  if (i->encoding != ENC_LEGACY)
    return i->map == 1 && (op == 0x2E || op == 0x2F) ? FLAGS_OVERWRITTEN : FLAGS_KEPT;
  if (i->map == 0) {
    if (op < 0x40 && (op & 7) < 6)
      return (op & 0x38) == 0x10 || (op & 0x38) == 0x18 ? FLAGS_READ : FLAGS_OVERWRITTEN;
    if (op == 0x80 || op == 0x81 || op == 0x83)
      return reg == 2 || reg == 3 ? FLAGS_READ : FLAGS_OVERWRITTEN;
    if (op == 0x84 || op == 0x85 || op == 0xA8 || op == 0xA9)
      return FLAGS_OVERWRITTEN;
    if (op == 0xF6 || op == 0xF7)
      return reg < 2 || reg == 3 ? FLAGS_OVERWRITTEN : FLAGS_KEPT;
    if ((op >= 0x50 && op < 0x60) || op == 0x63 || (op >= 0x68 && op <= 0x6B) || (op >= 0x86 && op <= 0x8B) || op == 0x8D || op == 0x8F ||
        op == 0x90 || op == 0x98 || op == 0x99 || (op >= 0xB0 && op < 0xC0) || op == 0xC6 || (op == 0xC7 && i->kind == K_PLAIN))
      return FLAGS_KEPT;
    return FLAGS_READ;
  }
  if (i->map == 1) {
    if (op == 0x2E || op == 0x2F)
      return FLAGS_OVERWRITTEN;
    if ((op >= 0x10 && op < 0x20) || (op >= 0x28 && op < 0x2E) || (op >= 0x50 && op < 0x78) || (op >= 0x7C && op < 0x80) || op == 0xAF ||
        op == 0xB6 || op == 0xB7 || op == 0xBE || op == 0xBF || op == 0xC2 || (op >= 0xC4 && op <= 0xC6) || (op >= 0xD0 && op < 0xFF))
      return FLAGS_KEPT;
    return FLAGS_READ;
  }
  return i->map == 2 && op == 0xF6 ? FLAGS_READ : FLAGS_KEPT;
}

static int flags_free(const Instruction *list, int n)
{
  for (int k = 0; k < n; k++) {
    enum Flags f = flags_of(&list[k]);
    if (f != FLAGS_KEPT)
      return f == FLAGS_OVERWRITTEN;
  }
  return 0;
}

/* ---- counters ---- */

/* Returns where the count has been made. */
static u8 *emit_count(u32 slot, int flags_are_free)
{
  if (flags_are_free) {
    e1(0x65), e1(0x48), e1(0xFF), e1(0x04), e1(0x25), e4(slot); /* inc qword gs:[slot] */
    return emit;
  }
  emit_store(RCX, C_S1);
  emit_load(RCX, slot);
  e1(0x48), e1(0x8D), e1(0x49), e1(0x01); /* lea rcx, [rcx + 1] */
  emit_store(RCX, slot);
  u8 *made = emit;
  emit_load(RCX, C_S1);
  return made;
}

/* How many bits of its mask register an EVEX instruction obeys: one for each element, of `bits` bits.
 * Source: Intel SDM vol. 2, the instructions' own pages; the unit test compares every maskable form that counts. */
static u32 mask_lanes(const u8 *code, const Instruction *i)
{
  const u8 *p = code + i->prefixes;
  u8 wide = p[2] >> 7, prefix = p[2] & 3, length = (p[3] >> 5) & 3, map = i->map, op = i->opcode;
  int is_register = p[5] >> 6 == 3, broadcast_or_rounding = p[3] & 0x10;
  u32 bits = wide ? 64 : 32;
  int scalar = 0;
  if (map == 1 || map == 5)
    scalar = prefix >= 2; /* F3 or F2 */
  else if (map == 2 || map == 6)
    scalar = (op >= 0x96 && op <= 0xBF && (op & 15) >= 9 && (op & 1)) || op == 0x4D || op == 0x4F ||
             (map == 2 ? op == 0xCB || op == 0xCD : op == 0x57 || op == 0xD7);
  if (scalar)
    return 1;
  if (map == 5 || map == 6)
    bits = map == 6 && (op == 0x56 || op == 0xD6) ? 32 : 16; /* complex numbers are pairs */
  else if (map == 2 && op == 0x04)
    bits = 16; /* vpmaddubsw: pairs of bytes */
  else if (map == 1 && op == 0xF5)
    bits = 32; /* vpmaddwd: pairs of words */
  if (broadcast_or_rounding && is_register)
    length = 2; /* embedded rounding: always 512 bits */
  return (128u << length) / bits;
}

API int flopwatch_mask_lanes(const u8 *code)
{
  Instruction i;
  return decode(code, (u64)code, &i) && i.mask ? (int)mask_lanes(code, &i) : 0;
}

static void emit_active_lanes(const Instruction *i, u32 slot)
{
  u32 lanes = mask_lanes((const u8 *)i->address, i);
  e1(0x48), e1(0x8D), e1(0x64), e1(0x24), e1(0x80);             /* lea rsp, [rsp - 128]: below the red zone */
  e1(0x9C);                                                     /* pushfq */
  e1(0x51);                                                     /* push rcx */
  if (lanes > 16) {
    e1(0xC4), e1(0xE1), e1(0xFB), e1(0x93), e1(0xC8 | i->mask); /* kmovq rcx, k: only with AVX512BW, as all forms of words */
    e1(0x89), e1(0xC9);                                         /* mov ecx, ecx: at most 32 lanes */
  } else {
    e1(0xC5), e1(0xF8), e1(0x93), e1(0xC8 | i->mask);           /* kmovw ecx, k */
    e1(0x81), e1(0xE1), e4((1u << lanes) - 1);                  /* and ecx, lanes */
  }
  e1(0xF3), e1(0x48), e1(0x0F), e1(0xB8), e1(0xC9);             /* popcnt rcx, rcx */
  e1(0x65), e1(0x48), e1(0x01), e1(0x0C), e1(0x25), e4(slot);   /* add gs:[slot], rcx */
  e1(0x59);                                                     /* pop rcx */
  e1(0x9D);                                                     /* popfq */
  e1(0x48), e1(0x8D), e1(0xA4), e1(0x24), e4(128);              /* lea rsp, [rsp + 128] */
}

/* ---- instructions ---- */

static int reaches(u64 target, u64 from)
{
  i64 d = (i64)(target - from);
  return d == (i32)d;
}

static u64 data_address(const Instruction *i)
{
  i32 d;
  memcpy(&d, (const u8 *)i->address + i->displacement_at, 4);
  return i->address + i->length + d;
}

static void emit_copy(const Instruction *i, const u8 *code)
{
  memcpy(emit, code, i->length);
  emit += i->length;
}

static void emit_far_data(const Instruction *i, const u8 *code, u64 target)
{
  u8 modrm = code[i->modrm_at], reg = (modrm >> 3) & 7, other = 255;
  if (i->encoding == ENC_LEGACY && i->map == 0 && i->opcode == 0x8D && !i->address32 && (i->rex & 8)) { /* lea: the address itself */
    e1(0x48 | ((i->rex & 4) >> 2)), e1(0xB8 | reg), e8(target);
    return;
  }
  if (i->encoding == ENC_VEX || i->encoding == ENC_XOP)
    other = (~code[i->opcode_at - 1] >> 3) & 7;
  else if (i->encoding == ENC_EVEX)
    other = (~code[i->prefixes + 2] >> 3) & 7;
  int borrowed = reg != RDI && other != RDI ? RDI : reg != RSI && other != RSI ? RSI : RBX;
  emit_store(borrowed, C_S3);
  e1(0x48), e1(0xB8 | borrowed), e8(target);
  u8 *at = emit;
  memcpy(at, code, i->modrm_at);
  if (i->rex)
    at[i->prefixes] &= ~1;
  else if (i->encoding == ENC_EVEX)
    at[i->prefixes + 1] |= 0x60;
  else if ((i->encoding == ENC_VEX && code[i->prefixes] == 0xC4) || i->encoding == ENC_XOP)
    at[i->prefixes + 1] |= 0x20;
  at[i->modrm_at] = (modrm & 0x38) | borrowed;
  int rest = i->length - (i->modrm_at + 5);
  memcpy(at + i->modrm_at + 1, code + i->modrm_at + 5, rest);
  emit = at + i->modrm_at + 1 + rest;
  emit_load(borrowed, C_S3);
}

static void emit_plain(const Instruction *i, const u8 *code)
{
  if (!i->displacement_at) {
    emit_copy(i, code);
    return;
  }
  u64 target = data_address(i);
  if (!reaches(target, (u64)emit + i->length)) {
    emit_far_data(i, code, target);
    return;
  }
  u8 *start = emit;
  emit_copy(i, code);
  i32 d = (i32)(target - (u64)emit);
  memcpy(start + i->displacement_at, &d, 4);
}

static void emit_exit(u64 target)
{
  u8 *patch = emit_jump_linkable(0xE9);
  exit_stub(target, patch);
}

static void emit_push(u64 value)
{
  if ((i64)value == (i32)value) {
    e1(0x68), e4((u32)value);
    return;
  }
  u64 *constant = (u64 *)stub_alloc(8);
  *constant = value;
  e1(0xFF), e1(0x35), e4((u32)((u8 *)constant - (emit + 4)));
}

static void emit_indirect_target(const Instruction *i, const u8 *code)
{
  /* rcx := the operand of FF /2 or /4 */
  for (int k = 0; k < i->prefixes; k++)
    if (code[k] == 0x64 || code[k] == 0x65 || code[k] == 0x67)
      e1(code[k]);
  if (i->displacement_at) {
    u64 target = data_address(i);
    e1(0x48), e1(0xB9), e8(target);
    e1(0x48), e1(0x8B), e1(0x09);
    return;
  }
  e1(0x48 | (i->rex & 3)), e1(0x8B), e1((code[i->modrm_at] & 0xC7) | RCX << 3);
  int rest = i->length - (i->modrm_at + 1);
  memcpy(emit, code + i->modrm_at + 1, rest);
  emit += rest;
}

/* The engine cannot follow what stands at `pc`: the thread goes on natively, and the record is partial. */
static u8 *leave_stub(u64 pc)
{
  u8 *stub = exit_stub(pc, NULL);
  ((Exit *)(stub + 32))->patch = LEAVE; /* the record lies behind its stub */
  return stub;
}

static Pause *emit_pause(u32 gate, u64 pc)
{
  Pause *p = (Pause *)stub_alloc(sizeof(Pause));
  p->pc = pc;
  emit_store(RAX, C_S0);
  e1(0x48), e1(0x8D), e1(0x05), e4((u32)((u8 *)p - (emit + 4)));
  emit_jump_slot(gate);
  p->resume = (u64)emit;
  return p;
}

/* The end of a block. Returns the address that it falls through to, or 0. */
static u64 emit_end(const Instruction *i, const u8 *code)
{
  u64 behind = i->address + i->length;
  Pause *p;
  switch (i->kind) {
  case K_JCC: {
    int condition = i->opcode & 15;
    u8 *patch = emit_jump_linkable(0x80 | condition);
    exit_stub(i->branch, patch);
    return behind;
  }
  case K_JMP:
    emit_exit(i->branch);
    return 0;
  case K_CALL:
    emit_push(behind);
    emit_exit(i->branch);
    return 0;
  case K_CALL_INDIRECT:
  case K_JMP_INDIRECT:
    emit_store(RCX, C_S1);
    emit_indirect_target(i, code);
    if (i->kind == K_CALL_INDIRECT)
      emit_push(behind);
    emit_lookup();
    return 0;
  case K_RET:
    emit_store(RCX, C_S1);
    e1(0x59); /* pop rcx */
    if (i->opcode == 0xC2)
      e1(0x48), e1(0x8D), e1(0xA4), e1(0x24), e4(code[i->opcode_at + 1] | code[i->opcode_at + 2] << 8); /* lea rsp, [rsp + n] */
    emit_lookup();
    return 0;
  case K_LOOP: {
    while (((u64)emit & 63) > 64 - 16)
      e1(0x90);
    if (i->address32)
      e1(0x67);
    e1(i->opcode), e1(5);
    e1(0xE9), e4(0);
    u8 *falls = emit - 4;
    e1(0xE9), e4(0);
    u8 *taken = emit - 4;
    exit_stub(behind, falls);
    exit_stub(i->branch, taken);
    return 0;
  }
  case K_SYSCALL:
    p = emit_pause(C_GATE_SYSCALL, behind);
    e1(0x0F), e1(0x05);
    e1(0x48), e1(0xB9), e8(behind); /* mov rcx, behind: as the kernel would have it */
    p->after = (u64)emit;
    return behind;
  case K_CPUID:
    p = emit_pause(C_GATE_CPUID, behind);
    p->after = (u64)emit;
    return behind;
  case K_XBEGIN: /* a transaction that aborts at once: always allowed */
    e1(0xB8), e4(0);
    emit_exit(i->branch);
    return 0;
  case K_TRAP:
    emit_copy(i, code);
    return behind;
  case K_UNSUPPORTED:
    emit_jump_to(leave_stub(i->address));
    return 0;
  }
  return behind;
}

/* ---- blocks ---- */

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
  u8 *made = emit_count(COUNTERS_OFFSET + 8 * (u32)ledger->blocks, flags_free(list, n));
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
