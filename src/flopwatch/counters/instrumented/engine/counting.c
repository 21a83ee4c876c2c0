/* Counters in translated code: one for each run of a block, one for the switched-on lanes of each masked instruction. */
#include "engine.h"

u8 interesting[1024];

int is_interesting(const Instruction *i)
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
u8 *emit_count(u32 slot, const Instruction *list, int n)
{
  if (flags_free(list, n)) {
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

void emit_active_lanes(const Instruction *i, u32 slot)
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
