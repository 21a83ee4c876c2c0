/* The ledger: a file shared with whoever asked for the counting, one for each image of each process.
 *
 * Its counters are the very memory that translated code increments, so whatever ends the program, what was counted is there.
 * Layout: header, notes, threads, regions, blocks, code, then one area of counters for each thread; the file is sparse.
 */
#include "engine.h"

LedgerHeader *ledger;
char ledger_directory[512];
static char ledger_path[600]; /* empty: the ledger is private memory, read in this process */

static int is_error(long p) { return p < 0 && p > -4096; }

static void *map(void *at, size_t bytes, int fd, u64 offset)
{
  int flags = (fd < 0 ? 0x20 : 0) | (fd < 0 && at ? 0x02 : 0x01) | 0x4000 | (at ? 0x10 : 0); /* the head is shared with forked children */
  long p = SYS(9, at, bytes, 3, flags, fd, offset);
  return is_error(p) ? NULL : (void *)p;
}

static int create(u32 pid)
{
  if (!ledger_directory[0])
    return -2;
  for (u32 n = 0; n < 10000; n++) {
    char *end = text_add(text_add(ledger_path, ledger_directory), "/");
    end = text_add(text_add_number(end, pid), ".");
    text_add_number(end, n);
    long fd = SYS(257, -100, ledger_path, 0x800C2 /* read and write, create, exclusive, close on exec */, 0600);
    if (fd != -17)
      return (int)fd;
  }
  return -17;
}

/* What must be there to say what is missing. Not every file system can tell beforehand. */
static int allocate_head(long fd)
{
  long ret = SYS(77 /* ftruncate */, fd, L_AREAS);
  if (ret == 0)
    ret = SYS(285 /* fallocate */, fd, 0, 0, L_THREADS);
  return ret == 0 || ret == -95 /* not supported */ || ret == -38;
}

int ledger_full(u64 address)
{
  u64 page = address & ~4095ul, start = (u64)ledger;
  int ours = ledger && address >= start && address < start + L_AREAS;
  for (u32 i = 0; !ours && i < context_count; i++)
    ours = contexts[i] && address >= (u64)counters_of(contexts[i]) && address < (u64)contexts[i] + CONTEXT_BYTES;
  if (!ours || is_error(SYS(9, page, 4096, 3, 0x32 /* private, fixed, anonymous */, -1, 0)))
    return 0;
  ledger->unsaved++;
  return 1;
}

static void read_command(void)
{
  long fd = SYS(257, -100, "/proc/self/cmdline", 0x80000);
  if (fd < 0)
    return;
  long n = SYS(0, fd, ledger->command, sizeof ledger->command - 1);
  SYS(3, fd);
  ledger->command[n > 0 ? n : 0] = 0;
}

static void head(enum How how)
{
  memcpy(ledger->magic, "FLOPWTCH", 8);
  ledger->version = LEDGER_VERSION;
  ledger->pid = SYS(GETPID);
  ledger->parent = SYS(110 /* getppid */);
  ledger->how = how;
  ledger->state = STATE_RUNNING;
  memset(ledger->command, 0, sizeof ledger->command);
  read_command();
}

int ledger_open(const char *directory, enum How how)
{
  long fd = -1;
  if (directory) {
    text_add(ledger_directory, directory);
    fd = create(SYS(GETPID));
    if (fd < 0)
      return 0;
    if (!allocate_head(fd)) {
      SYS(87 /* unlink */, ledger_path);
      SYS(3, fd);
      return 0;
    }
  }
  ledger = map(NULL, L_AREAS, fd, 0);
  if (fd >= 0)
    SYS(3, fd);
  if (!ledger)
    return 0;
  head(how);
  return 1;
}

int ledger_map_area(Context *c)
{
  u64 offset = L_AREAS + (u64)c->slot * AREA_BYTES;
  void *at = (u8 *)c + COUNTERS_OFFSET;
  if (ledger_path[0]) {
    long fd = SYS(257, -100, ledger_path, 0x80002);
    if (fd >= 0) {
      struct { u64 before[6]; i64 size; u64 behind[20]; } status;
      if (SYS(5 /* fstat */, fd, &status) == 0 && (u64)status.size < offset + AREA_BYTES)
        SYS(77, fd, offset + AREA_BYTES);
      void *p = map(at, AREA_BYTES, fd, offset);
      SYS(3, fd);
      if (p)
        return 1;
    }
    note("a thread's counters could not be shared", c->slot);
  }
  return map(at, AREA_BYTES, -1, 0) != NULL;
}

int ledger_fork(Context *c)
{
  LedgerHeader *old = ledger;
  long fd = create(SYS(GETPID));
  if (fd >= 0 && !allocate_head(fd)) {
    SYS(87 /* unlink */, ledger_path);
    SYS(3, fd);
    fd = -1;
  }
  if (fd < 0)
    ledger_path[0] = 0;
  LedgerHeader *new = map(NULL, L_AREAS, (int)fd, 0);
  if (!new)
    return 0;
  if (fd < 0)
    __atomic_fetch_add(&old->lost_children, 1, __ATOMIC_RELAXED);
  memcpy((u8 *)new + L_REGIONS, (u8 *)old + L_REGIONS, old->regions * sizeof(Region));
  memcpy((u8 *)new + L_BLOCKS, (u8 *)old + L_BLOCKS, old->blocks * sizeof(LedgerBlock));
  memcpy((u8 *)new + L_CODE, (u8 *)old + L_CODE, old->code_bytes);
  new->blocks = old->blocks, new->code_bytes = old->code_bytes, new->regions = old->regions, new->lanes = old->lanes;
  SYS(25 /* mremap */, new, L_AREAS, L_AREAS, 3 /* may move, fixed */, old);
  if (fd >= 0)
    SYS(3, fd);
  head(HOW_FORK);
  (void)c;
  return 1;
}

void note(const char *text, u64 number)
{
  u64 n = __atomic_fetch_add(&ledger->notes, 1, __ATOMIC_RELAXED);
  if (n >= MAX_NOTES)
    return;
  char *to = (char *)ledger + L_NOTES + n * NOTE_BYTES;
  to = text_add(text_add(to, text), " 0x");
  text_add_hex(to, number);
}
