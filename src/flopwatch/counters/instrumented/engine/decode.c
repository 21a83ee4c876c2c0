/* How long an instruction is, and what kind of branch.
 *
 * Source: Intel SDM vol. 2, appendix A (opcode maps) and chapter 2 (prefixes, VEX, EVEX); AMD APM vol. 3 (XOP, 3DNow!).
 * The unit test compares every length and kind with the decoder library over whole libraries.
 */
#include "engine.h"

/* . nothing  M modrm  m modrm+imm8  W modrm+imm16/32  b imm8  z imm16/32  w imm16  q imm16/32/64  a address  e enter
 * R modrm of registers, whatever its mode  p prefix  x not in 64-bit mode  j rel8  J rel32  3/4 group 3 (byte, word)  E escape to another table */
static const char one_byte[257] =
    "MMMMbzxxMMMMbzxE" "MMMMbzxxMMMMbzxx" "MMMMbzpxMMMMbzpx" "MMMMbzpxMMMMbzpx"
    "pppppppppppppppp" "................" "xxEMppppzWbm...." "jjjjjjjjjjjjjjjj"
    "mWxmMMMMMMMMMMMM" "..........x....." "aaaa....bz......" "bbbbbbbbqqqqqqqq"
    "mmw.EEmWe.w..bx." "MMMMxxx.MMMMMMMM" "jjjjbbbbJJxj...." "p.pp..34......MM";

static const char two_byte[257] =
    "MMMMx.......xM.." "MMMMMMMMMMMMMMMM" "RRRRxxxxMMMMMMMM" "......x.ExExxxxx"
    "MMMMMMMMMMMMMMMM" "MMMMMMMMMMMMMMMM" "MMMMMMMMMMMMMMMM" "mmmmMMM.MMxxMMMM"
    "JJJJJJJJJJJJJJJJ" "MMMMMMMMMMMMMMMM" "...MmMMM...MmMMM" "MMMMMMMMMMmMMMMM"
    "MMmMmmmM........" "MMMMMMMMMMMMMMMM" "MMMMMMMMMMMMMMMM" "MMMMMMMMMMMMMMMM";

static int modrm_length(const u8 *p, Instruction *out, const u8 *code)
{
  u8 modrm = *p, mod = modrm >> 6, rm = modrm & 7;
  out->modrm_at = p - code;
  if (mod == 3)
    return 1;
  int n = 1;
  if (rm == 4) {
    u8 base = p[1] & 7;
    n = 2;
    if (mod == 0 && base == 5)
      n += 4;
  } else if (mod == 0 && rm == 5) {
    out->displacement_at = out->modrm_at + 1;
    n += 4;
  }
  if (mod == 1)
    n += 1;
  else if (mod == 2)
    n += 4;
  return n;
}

static int map1_has_imm8(u8 op) { return (op >= 0x70 && op <= 0x73) || op == 0xC2 || op == 0xC4 || op == 0xC5 || op == 0xC6; }

static int vector_rest(const u8 *code, const u8 *p, Instruction *out, int map)
{
  /* p is at the opcode */
  out->map = map;
  out->opcode = *p;
  out->opcode_at = p - code;
  p++;
  if (out->encoding == ENC_VEX && map == 1 && out->opcode == 0x77)
    return p - code; /* vzeroupper, vzeroall */
  p += modrm_length(p, out, code);
  if (out->encoding == ENC_XOP)
    p += map == 0 ? 1 : map == 2 ? 4 : 0;
  else if (map == 3 || (map == 1 && map1_has_imm8(out->opcode)))
    p += 1;
  else if (map == 7 && out->encoding == ENC_VEX)
    p += 4;
  return p - code;
}

static int two_byte_kind(const u8 *code, Instruction *out)
{
  switch (out->opcode) {
  case 0x05: return K_SYSCALL;
  case 0x0B: case 0xB9: case 0xFF: return K_TRAP;
  case 0x34: case 0x35: case 0x07: return K_UNSUPPORTED; /* sysenter, sysexit, sysret */
  case 0xA2: return K_CPUID;
  case 0x01: return out->repeat == 0xF3 && code[out->modrm_at] == 0xEC ? K_UNSUPPORTED : K_PLAIN; /* uiret */
  }
  return (out->opcode & 0xF0) == 0x80 ? K_JCC : K_PLAIN;
}

static int one_byte_kind(const u8 *code, Instruction *out)
{
  u8 op = out->opcode, reg = out->modrm_at ? (code[out->modrm_at] >> 3) & 7 : 0;
  if ((op & 0xF0) == 0x70)
    return K_JCC;
  switch (op) {
  case 0xE8: return K_CALL;
  case 0xE9: case 0xEB: return K_JMP;
  case 0xE0: case 0xE1: case 0xE2: case 0xE3: return K_LOOP;
  case 0xC2: case 0xC3: return K_RET;
  case 0xCA: case 0xCB: case 0xCF: case 0xCD: return K_UNSUPPORTED;
  case 0xCC: case 0xF1: case 0xF4: return K_TRAP;
  case 0xFF: return reg == 2 ? K_CALL_INDIRECT : reg == 4 ? K_JMP_INDIRECT : reg == 3 || reg == 5 ? K_UNSUPPORTED : K_PLAIN;
  case 0xC7: return code[out->modrm_at] == 0xF8 ? K_XBEGIN : K_PLAIN;
  }
  return K_PLAIN;
}

static int legacy(const u8 *code, const u8 *p, Instruction *out)
{
  char form;
  out->encoding = ENC_LEGACY;
  out->opcode_at = p - code;
  if (*p == 0x0F) {
    p++;
    if (*p == 0x38 || *p == 0x3A) {
      out->map = *p == 0x38 ? 2 : 3;
      form = *p++ == 0x38 ? 'M' : 'm';
    } else {
      out->map = 1;
      form = two_byte[*p];
      if (*p == 0x0F)
        form = 'm'; /* 3DNow!: the opcode comes last */
      else if (*p == 0x78 && (out->operand16 || out->repeat == 0xF2))
        form = 'D'; /* extrq, insertq: two bytes */
    }
    out->opcode_at = p - code;
  } else {
    out->map = 0;
    form = one_byte[*p];
  }
  out->opcode = *p++;
  int immediate = 0, wide = out->rex & 8, z = out->operand16 && !wide ? 2 : 4;
  switch (form) {
  case '.': break;
  case 'R': out->modrm_at = p++ - code; break;
  case 'M': p += modrm_length(p, out, code); break;
  case 'm': p += modrm_length(p, out, code); immediate = 1; break;
  case 'D': p += modrm_length(p, out, code); immediate = 2; break;
  case 'W': p += modrm_length(p, out, code); immediate = z; break;
  case 'b': case 'j': immediate = 1; break;
  case 'z': immediate = z; break;
  case 'J': immediate = 4; break;
  case 'w': immediate = 2; break;
  case 'e': immediate = 3; break;
  case 'q': immediate = wide ? 8 : z; break;
  case 'a': immediate = out->address32 ? 4 : 8; break;
  case '3': case '4': {
    int reg = (*p >> 3) & 7;
    p += modrm_length(p, out, code);
    immediate = reg < 2 ? (form == '3' ? 1 : z) : 0;
    break;
  }
  default: return 0;
  }
  out->kind = out->map == 0 ? one_byte_kind(code, out) : out->map == 1 ? two_byte_kind(code, out) : K_PLAIN;
  int length = p + immediate - code;
  if (out->kind == K_JCC || out->kind == K_JMP || out->kind == K_CALL || out->kind == K_LOOP || out->kind == K_XBEGIN) {
    i64 distance = immediate == 1 ? *(const signed char *)p : immediate == 2 ? *(const int16_t *)p : *(const i32 *)p;
    out->branch = out->address + length + distance;
  }
  return length;
}

int decode(const u8 *code, u64 address, Instruction *out)
{
  const u8 *p = code;
  memset(out, 0, sizeof *out);
  out->address = address;
  for (;; p++) {
    u8 b = *p;
    if (p - code > 13) return 0;
    if ((b & 0xF0) == 0x40) { /* counts only as the last prefix */
      out->rex = b;
      continue;
    }
    if (b == 0x66) out->operand16 = 1;
    else if (b == 0x67) out->address32 = 1;
    else if (b == 0xF2 || b == 0xF3) out->repeat = b;
    else if (b != 0xF0 && b != 0x2E && b != 0x36 && b != 0x3E && b != 0x26 && b != 0x64 && b != 0x65) break;
    out->rex = 0;
  }
  out->prefixes = p - code - (out->rex != 0);
  int length;
  if (out->rex) {
    length = legacy(code, p, out);
  } else if (*p == 0xC5) {
    out->encoding = ENC_VEX;
    length = vector_rest(code, p + 2, out, 1);
  } else if (*p == 0xC4) {
    out->encoding = ENC_VEX;
    length = vector_rest(code, p + 3, out, p[1] & 31);
  } else if (*p == 0x62) {
    out->encoding = ENC_EVEX;
    out->mask = p[3] & 7;
    if ((p[1] & 7) == 4 || !(p[1] & 7)) return 0; /* APX: its processors hide it from followed programs */
    length = vector_rest(code, p + 4, out, p[1] & 7);
  } else if (*p == 0x8F && (p[1] & 31) >= 8) {
    out->encoding = ENC_XOP;
    length = vector_rest(code, p + 3, out, (p[1] & 31) - 8);
  } else {
    length = legacy(code, p, out);
  }
  if (length <= 0 || length > 15) return 0;
  out->length = length;
  return length;
}
