/* Blocks that a signal leaves in the middle: a fault, or a handler that never returns. A block is counted when it begins, so what a signal
 * interrupts is split: the block counts one less, its beginning, a block of its own in the ledger, one more. If the program goes on after
 * all, this is undone.
 */
#include "engine.h"

#define KNOWN 64

static struct { u32 whole, length, part; } known[KNOWN]; /* programs that fault tend to fault again at the same place */

static u32 beginning(u32 whole, u32 length)
{
  u32 k = (whole * 31 + length) % KNOWN;
  if (known[k].whole == whole && known[k].length == length && known[k].part)
    return known[k].part;
  if (ledger->blocks >= MAX_BLOCKS) {
    ledger->overflow++;
    return whole;
  }
  LedgerBlock *b = ledger_blocks(), *part = &b[ledger->blocks];
  *part = b[whole];
  part->length = (u16)length;
  part->masked = 0; /* the lanes that it switched on are in the whole block's counters */
  known[k].whole = whole, known[k].length = length, known[k].part = (u32)ledger->blocks;
  return (u32)ledger->blocks++;
}

Cut cut(Context *c, u64 code, u64 pc)
{
  Cut made = {NULL, NULL};
  lock_cache();
  const Translation *t = translation_at(code);
  if (t && t->block && code >= t->counted && code < t->code + t->length && pc >= t->pc) {
    u32 whole = t->block - 1;
    u64 length = pc - t->pc;
    made.whole = &counters_of(c)[whole];
    --*made.whole;
    if (length) {
      made.part = &counters_of(c)[beginning(whole, (u32)length)];
      ++*made.part;
    }
  }
  unlock_cache();
  return made;
}

void cut_undo(Cut made)
{
  if (made.whole)
    ++*made.whole;
  if (made.part)
    --*made.part;
}
