/* The few instruction forms that the engine itself writes, and the pieces shared by all translations. */
#include "engine.h"

static u64 miss_entry;

void emit_store(int reg, u32 slot)
{
  e1(0x65), e1(reg > 7 ? 0x4C : 0x48), e1(0x89), e1(0x04 | (reg & 7) << 3), e1(0x25), e4(slot);
}

void emit_load(int reg, u32 slot)
{
  e1(0x65), e1(reg > 7 ? 0x4C : 0x48), e1(0x8B), e1(0x04 | (reg & 7) << 3), e1(0x25), e4(slot);
}

/* Blocks begin at multiples of 8, so that their first bytes can be replaced in one store. */
void emit_align(void)
{
  static const u8 nops[7][7] = {{0x90}, {0x66, 0x90}, {0x0F, 0x1F, 0x00}, {0x0F, 0x1F, 0x40, 0x00}, {0x0F, 0x1F, 0x44, 0x00, 0x00},
                                {0x66, 0x0F, 0x1F, 0x44, 0x00, 0x00}, {0x0F, 0x1F, 0x80, 0x00, 0x00, 0x00, 0x00}};
  int n = -(u64)emit & 7;
  if (n)
    memcpy(emit, nops[n - 1], n);
  emit += n;
}

void emit_jump_slot(u32 slot) { e1(0x65), e1(0xFF), e1(0x24), e1(0x25), e4(slot); }

void emit_jump_to(u8 *to) { e1(0xE9), e4((u32)(to - (emit + 4))); }

u8 *emit_jump_linkable(int opcode)
{
  int length = opcode == 0xE9 ? 1 : 2;
  while ((((u64)emit + length) & 63) > 60)
    e1(0x90);
  if (opcode != 0xE9)
    e1(0x0F);
  e1(opcode);
  e4(0);
  return emit - 4;
}

/* Goes to the translation of the address in rcx; the program's rcx is in S1. Flags stay untouched: sums by lea, the test by jrcxz.
 * Laid out at every indirect branch, so that the processor predicts each by its own history. Where it arrives (landing in cache.c),
 * the three registers are put back. */
void emit_lookup(void)
{
  emit_store(RDX, C_S2);
  e1(0x0F), e1(0xB7), e1(0xD1);                                      /* movzx edx, cx */
  emit_store(RAX, C_S0);
  e1(0x65), e1(0x48), e1(0x8B), e1(0x04), e1(0xD5), e4(TAGS_OFFSET); /* mov rax, gs:[rdx * 8 + tags] */
  e1(0x48), e1(0x8D), e1(0x0C), e1(0x01);                            /* lea rcx, [rcx + rax] */
  e1(0xE3), e1(5);                                                   /* jrcxz hit */
  emit_jump_to((u8 *)miss_entry);                                    /* 5 bytes */
  e1(0x65), e1(0xFF), e1(0x24), e1(0xD5), e4(LANDINGS_OFFSET);       /* jmp gs:[rdx * 8 + landings] */
}

static void emit_miss(void)
{
  miss_entry = (u64)emit;
  e1(0x48), e1(0xF7), e1(0xD0);                     /* not rax */
  e1(0x48), e1(0x8D), e1(0x44), e1(0x01), e1(0x01); /* lea rax, [rcx + rax + 1]: the target again */
  emit_store(RAX, C_TARGET);
  emit_load(RDX, C_S2);
  emit_load(RCX, C_S1);
  e1(0xB8), e4(0); /* mov eax, 0: no exit record */
  emit_jump_slot(C_GATE_DISPATCH);
}

/* Restores the signal mask from inside the cache, where a signal that waits can be taken; then goes on at NEXT2. */
static void emit_unblock(void)
{
  static const u8 saved[7] = {RAX, RDI, RSI, RDX, R10, R11, RCX};
  unblock_entry = (u64)emit;
  for (int i = 0; i < 7; i++)
    emit_store(saved[i], C_U + 8 * i);
  e1(0xB8), e4(14);              /* mov eax, rt_sigprocmask */
  e1(0xBF), e4(2);               /* mov edi, SIG_SETMASK */
  emit_load(RSI, C_SELF);
  e1(0x48), e1(0x8D), e1(0xB6), e4(C_MASK); /* lea rsi, [rsi + MASK] */
  e1(0xBA), e4(0);               /* mov edx, 0 */
  e1(0x41), e1(0xBA), e4(8);     /* mov r10d, 8 */
  e1(0x0F), e1(0x05);
  for (int i = 0; i < 7; i++)
    emit_load(saved[i], C_U + 8 * i);
  emit_jump_slot(C_NEXT2);
  unblock_end = (u64)emit;
}

/* A clone that shares memory: both sides come out of the system call here; the child finds its context through its parent's. */
static void emit_clone(void)
{
  clone_entry = (u64)emit;
  e1(0x0F), e1(0x05);            /* syscall; rcx and r11 are the kernel's to spoil */
  e1(0x48), e1(0x89), e1(0xC1);  /* mov rcx, rax */
  e1(0xE3), e1(22);              /* jrcxz child */
  emit_store(RAX, C_S0);         /* 9 bytes */
  e1(0xB8), e4(0);               /* 5 bytes */
  emit_jump_slot(C_GATE_CLONED); /* 8 bytes */
  emit_load(RCX, C_CHILD);
  e1(0x48), e1(0x89), e1(0xB9), e4(C_U);      /* mov [rcx + U0], rdi */
  e1(0x48), e1(0x89), e1(0xB1), e4(C_U + 8);  /* mov [rcx + U1], rsi */
  e1(0x48), e1(0x89), e1(0xCE);  /* mov rsi, rcx */
  e1(0xBF), e4(0x1001);          /* mov edi, ARCH_SET_GS */
  e1(0xB8), e4(158);             /* mov eax, arch_prctl */
  e1(0x0F), e1(0x05);
  emit_load(RDI, C_U);
  emit_load(RSI, C_U + 8);
  e1(0xB8), e4(0);               /* the child's result of clone */
  emit_store(RAX, C_S0);
  e1(0x48), e1(0xB9), e8((u64)gate_child); /* mov rcx, gate_child */
  e1(0xFF), e1(0xE1);            /* jmp rcx */
}

void emit_common(void)
{
  emit_miss();
  emit = (u8 *)(((u64)emit + 15) & ~15ul);
  emit_unblock();
  emit = (u8 *)(((u64)emit + 15) & ~15ul);
  emit_clone();
  emit = (u8 *)(((u64)emit + 15) & ~15ul);
}
