/* Alternate stacks of signal handlers.
 *
 * A signal may meet the engine on its own stack while a handler runs on the program's alternate one. The kernel would take that for empty,
 * and write the new frame over the handler's. So it is told to forget the alternate stack when it enters it, and to remember it when the
 * handler returns. Where a handler is left by a jump instead, the engine reminds it at the next border.
 */
#include "engine.h"

#define SIGALTSTACK 131
#define SS_ONSTACK 1u
#define SS_DISABLE 2u
#define SS_AUTODISARM (1u << 31)
#define EPERM (-1)

typedef struct Stack {
  u64 start;
  u32 flags, unused;
  u64 bytes;
} Stack;

static int is_on(const Context *c, u64 rsp) { return rsp - c->alt_start - 1 < c->alt_bytes; }

static void arm(const Context *c)
{
  Stack wanted = {c->alt_start, c->alt_bytes ? SS_AUTODISARM : SS_DISABLE, 0, c->alt_bytes};
  SYS(SIGALTSTACK, &wanted, NULL);
}

/* The calling thread has one already. */
void altstack_take(Context *c)
{
  Stack old;
  if (SYS(SIGALTSTACK, NULL, &old) < 0 || (old.flags & (SS_DISABLE | SS_ONSTACK | SS_AUTODISARM)))
    return;
  c->alt_start = old.start, c->alt_bytes = old.bytes;
  arm(c);
}

/* The calling thread goes on natively, with the stack as the program set it. */
void altstack_give_back(Context *c)
{
  Stack wanted = {c->alt_start, c->alt_bytes ? 0 : SS_DISABLE, 0, c->alt_bytes};
  SYS(SIGALTSTACK, &wanted, NULL);
  c->alt_start = c->alt_bytes = 0;
}

long altstack_change(Context *c, const void *new_, void *old_, u64 rsp)
{
  u64 start = c->alt_start, bytes = c->alt_bytes;
  const Stack *new = new_;
  int on = c->alt_entered && is_on(c, rsp);
  if (new && on)
    return EPERM;
  if (new) {
    Stack wanted = *new;
    wanted.flags |= wanted.flags & SS_DISABLE ? 0 : SS_AUTODISARM;
    long ret = SYS(SIGALTSTACK, &wanted, NULL);
    if (ret < 0)
      return ret;
    c->alt_start = new->start, c->alt_bytes = new->flags & SS_DISABLE ? 0 : new->bytes;
    c->alt_entered = 0;
  }
  if (old_)
    *(Stack *)old_ = (Stack){start, on ? SS_ONSTACK : bytes ? 0 : SS_DISABLE, 0, bytes};
  return 0;
}

/* A handler begins, its frame at `frame`. Tells what is to be put back when it returns. */
u32 altstack_enter(Context *c, u64 frame)
{
  u32 before = c->alt_entered;
  c->alt_entered = before || is_on(c, frame);
  return before;
}

void altstack_remind(Context *c)
{
  if (is_on(c, c->r[RSP]))
    return;
  c->alt_entered = 0;
  arm(c);
}
