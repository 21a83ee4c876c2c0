/* Instructions as they are translated: copied, but for branches, data that is out of reach, and system calls. */
#include "engine.h"

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

void emit_plain(const Instruction *i, const u8 *code)
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

void emit_exit(u64 target)
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

Pause *emit_pause(u32 gate, u64 pc)
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
u64 emit_end(const Instruction *i, const u8 *code)
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
