/* What happens between two translated blocks that are not linked yet, and at the instructions that need a look. */
#include "engine.h"

/* Leaves the translation for good: the thread goes on natively at `pc`. */
void leave(Context *c, u64 pc)
{
  altstack_give_back(c);
  c->native = 1;
  c->next = pc;
}

static void call_own_function(Context *c, u64 pc)
{
  /* Translated code calls the engine itself: natively, and back through reenter. */
  if (pc == (u64)nested_return) {
    c->next = pc;
    return;
  }
  if (pc == (u64)flopwatch_end) {
    LedgerThread *t = &ledger_threads()[c->slot];
    t->state = THREAD_LEFT;
    leave(c, pc);
    return;
  }
  u64 *top = (u64 *)c->r[RSP];
  c->resume = *top;
  *top = (u64)reenter;
  c->next = pc;
}

void engine_dispatch(Context *c)
{
  Exit *e = (Exit *)c->exit;
  u64 pc = e ? e->target : c->target;
  if (UNLIKELY(c->alt_entered))
    altstack_remind(c);
  if (UNLIKELY(in_engine(pc))) {
    call_own_function(c, pc);
  } else if (UNLIKELY(e && e->patch == LEAVE)) {
    note("an instruction that cannot be followed, thread left uncounted at", pc);
    ledger_threads()[c->slot].state = THREAD_LEFT;
    leave(c, pc);
  } else if (UNLIKELY(stopping)) {
    ledger_threads()[c->slot].state = THREAD_LEFT;
    leave(c, pc);
  } else {
    u64 code = lookup(pc);
    if (!code) {
      lock_cache();
      code = lookup(pc);
      if (!code)
        code = translate(pc);
      unlock_cache();
    }
    if (!code) {
      c->next = pc; /* nothing executable there: let it fault at its own address */
    } else {
      if (e && e->patch)
        link_exit(e, code);
      else
        ibl_set(c, pc, code);
      c->next = code;
    }
  }
}

/* Instruction sets that the engine cannot decode are hidden from the program. Source: Intel SDM vol. 2, CPUID; Intel APX and AVX10 specifications. */
static const struct Hidden {
  u32 leaf, subleaf, reg, bit;
} hidden[] = {
    {7, 1, RDX, 21}, /* APX_F: REX2 and extended EVEX encodings */
    {7, 1, RDX, 19}, /* AVX10 */
    {7, 0, RBX, 4},  /* HLE */
    {7, 0, RBX, 11}, /* RTM: transactions cannot hold the engine's borders */
};

void engine_cpuid(Context *c)
{
  Pause *p = (Pause *)c->exit;
  u32 leaf = (u32)c->r[RAX], subleaf = (u32)c->r[RCX], a = leaf, b, cx = subleaf, d;
  __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(cx), "=d"(d));
  c->r[RAX] = a, c->r[RBX] = b, c->r[RCX] = cx, c->r[RDX] = d;
  for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
    if (hidden[i].leaf == leaf && hidden[i].subleaf == subleaf && (c->r[hidden[i].reg] >> hidden[i].bit & 1)) {
      c->r[hidden[i].reg] &= ~(1ull << hidden[i].bit);
      ledger->hidden |= 1u << i;
    }
  c->next = p->after;
}

void engine_check(Context *c)
{
  Pause *p = (Pause *)c->exit;
  c->next = p->resume;
  if (memcmp((const void *)p->pc, (const void *)p->bytes, p->length) == 0)
    return;
  lock_cache();
  int region = region_of(p->pc);
  if (region >= 0)
    translations_drop(region, p->pc, p->pc + p->length);
  u64 code = translate(p->pc);
  unlock_cache();
  c->next = code ? code : p->pc;
}
