/* Which code is mapped where, read from /proc/self/maps when an address is met that no known region holds. */
#include "engine.h"

static char text[1 << 14];

static u64 parse_hex(const char **p)
{
  u64 n = 0;
  for (;; (*p)++) {
    char c = **p;
    if (c >= '0' && c <= '9') n = n * 16 + (c - '0');
    else if (c >= 'a' && c <= 'f') n = n * 16 + (c - 'a' + 10);
    else return n;
  }
}

static u64 sought; /* is_writable asks for this address */
static int sought_writable;
static u32 guarded; /* some code is, or was */
static u8 seen[MAX_REGIONS]; /* met while the maps were read last */

/* Our own protection splits the lines of writable regions. */
static int is_same(const Region *r, u64 start, u64 end, u64 offset, const char *path)
{
  if (r->writable ? r->start > start || r->end < end : r->start != start || r->end != end || r->offset != offset)
    return 0;
  size_t length = text_length(path), kept = text_length(r->path);
  return memcmp(r->path, path, length < kept ? length : kept) == 0 && (length == kept || kept == sizeof r->path - 1);
}

static int overlaps(const Region *r, u64 start, u64 end) { return !r->dropped && r->start < end && r->end > start; }

/* A free place in the table. Where files were mapped is kept to the end, for the names of what ran there. */
static int place(void)
{
  Region *r = ledger_regions();
  u32 n = ledger->regions;
  if (n > MAX_REGIONS / 4)
    for (u32 i = 0; i < n; i++)
      if (r[i].dropped && r[i].path[0] != '/')
        return (int)i;
  if (n >= MAX_REGIONS) {
    ledger->overflow++;
    return -1;
  }
  ledger->regions = n + 1;
  return (int)n;
}

static void put(Region like, u64 start, u64 end)
{
  int i = place();
  if (i < 0)
    return;
  like.offset += start - like.start;
  like.start = start, like.end = end;
  ledger_regions()[i] = like;
  seen[i] = 1;
  imports_look(&ledger_regions()[i]);
}

/* A line of the maps. What is known already of it stays: our own protection splits the lines of writable regions, and the kernel joins
 * the lines of neighbours. */
static void add(u64 start, u64 end, u64 offset, enum Guard writable, const char *path)
{
  Region *r = ledger_regions(), new = {start, end, offset, writable, 0, {0}, 0};
  size_t length = text_length(path);
  memcpy(new.path, path, length < sizeof new.path - 1 ? length : sizeof new.path - 1);
  u32 n = ledger->regions;
  for (u32 i = n; i-- > 0;)
    if (!r[i].dropped && is_same(&r[i], start, end, offset, path)) {
      seen[i] = 1;
      return;
    }
  for (u64 at = start; at < end;) {
    u64 stop = end, next = end;
    for (u32 i = 0; i < n && path[0] != '/'; i++)
      if (overlaps(&r[i], at, end) && r[i].path[0] != '/') {
        seen[i] = 1;
        if (r[i].start <= at)
          stop = at, next = r[i].end;
        else if (r[i].start < stop)
          stop = next = r[i].start;
        if (stop == at)
          break;
      }
    if (stop > at)
      put(new, at, stop);
    at = next;
  }
}

static void line(const char *p)
{
  u64 start = parse_hex(&p);
  p++;
  u64 end = parse_hex(&p);
  p++;
  if (UNLIKELY(sought >= start && sought < end))
    sought_writable = p[1] == 'w';
  if (p[2] != 'x' || p[0] != 'r')
    return;
  int writable = p[1] == 'w', shared = p[3] == 's';
  p += 5;
  u64 offset = parse_hex(&p);
  while (*p == ' ') p++;
  while (*p && *p != ' ') p++; /* device */
  while (*p == ' ') p++;
  while (*p && *p != ' ') p++; /* inode */
  while (*p == ' ') p++;
  if (start >= (u64)cache_start && start < (u64)cache_end)
    return;
  /* Shared memory that is no file of a library may be written through another mapping; a stack is written all the time. */
  int elsewhere = shared && (!*p || text_starts(p, "/memfd:") || text_starts(p, "/dev/shm"));
  add(start, end, offset, elsewhere || (writable && text_starts(p, "[stack")) ? GUARD_COMPARE : writable ? GUARD_PROTECT : GUARD_NONE, p);
}

static void read_maps(void)
{
  int fd = SYS(257 /* openat */, -100, "/proc/self/maps", 0x80000 /* close on exec */);
  if (fd < 0)
    return;
  size_t kept = 0;
  long n;
  while ((n = SYS(0 /* read */, fd, text + kept, sizeof text - kept - 1)) > 0) {
    kept += n;
    size_t from = 0;
    for (size_t i = 0; i < kept; i++)
      if (text[i] == '\n') {
        text[i] = 0;
        line(text + from);
        from = i + 1;
      }
    memcpy(text, text + from, kept - from);
    kept -= from;
    if (kept == sizeof text - 1)
      kept = 0; /* a line longer than the buffer: no path is */
  }
  SYS(3 /* close */, fd);
}

#define PAGE 4096ul

void region_protect(u64 start, u64 end)
{
  guarded = 1;
  signals_guard();
  start &= ~(PAGE - 1);
  SYS(10 /* mprotect */, start, ((end + PAGE - 1) & ~(PAGE - 1)) - start, 5 /* read, execute */);
}

static int is_writable(u64 address)
{
  lock_cache();
  sought = address, sought_writable = 0;
  read_maps();
  sought = 0;
  unlock_cache();
  return sought_writable;
}

/* Nobody will be there for the faults: writable code is writable again. The caller holds the lock. */
void regions_unguard(void)
{
  Region *r = ledger_regions();
  for (u32 i = 0; i < ledger->regions; i++)
    if (!r[i].dropped && r[i].writable == GUARD_PROTECT) {
      translations_drop(i, 0, ~0ul);
      SYS(10, r[i].start, r[i].end - r[i].start, 7);
    }
}

/* The kernel is about to write there, and would fail where a program's own write faults and is helped. */
void regions_receive(u64 start, u64 bytes)
{
  Region *r = ledger_regions();
  for (u32 i = 0; guarded && i < ledger->regions; i++)
    if (!r[i].dropped && r[i].writable == GUARD_PROTECT && start < r[i].end && start + bytes > r[i].start) {
      u64 end = start + bytes < r[i].end ? start + bytes : r[i].end;
      for (u64 page = start > r[i].start ? start : r[i].start; page < end; page = (page & ~(PAGE - 1)) + PAGE)
        region_written(page);
    }
}

void regions_receive_parts(const u64 *starts_and_bytes, u64 n)
{
  for (u64 i = 0; guarded && i < n && i < 1024 /* the most that the kernel takes */; i++)
    regions_receive(starts_and_bytes[2 * i], starts_and_bytes[2 * i + 1]);
}

void region_step(u64 address)
{
  Region *r = ledger_regions();
  lock_cache();
  for (u32 i = ledger->regions; i-- > 0;)
    if (overlaps(&r[i], address, address + 1) && r[i].writable) {
      r[i].writable = GUARD_STEP;
      translations_drop(i, 0, ~0ul);
      SYS(10, r[i].start, r[i].end - r[i].start, 7);
    }
  unlock_cache();
}

int region_written(u64 address)
{
  Region *r = ledger_regions();
  lock_cache();
  for (u32 i = ledger->regions; i-- > 0;)
    if (overlaps(&r[i], address, address + 1)) {
      u64 page = address & ~(PAGE - 1);
      int ours = r[i].writable == GUARD_PROTECT;
      if (ours && ++r[i].faults > MANY_FAULTS) {
        r[i].writable = GUARD_COMPARE;
        translations_drop(i, 0, ~0ul);
        SYS(10, r[i].start, r[i].end - r[i].start, 7);
      } else if (ours) {
        translations_drop(i, page, page + PAGE);
        SYS(10, page, PAGE, 7);
      }
      unlock_cache();
      return ours || is_writable(address);
    }
  unlock_cache();
  return is_writable(address); /* another thread was here first */
}

static int find(u64 address)
{
  static int last;
  Region *r = ledger_regions();
  int n = ledger->regions;
  if (last < n && !r[last].dropped && address >= r[last].start && address < r[last].end)
    return last;
  for (int i = n; i-- > 0;)
    if (!r[i].dropped && address >= r[i].start && address < r[i].end)
      return last = i;
  return -1;
}

int region_of(u64 address)
{
  int i = find(address);
  if (i < 0) {
    read_maps();
    i = find(address);
  }
  return i;
}

void regions_check(void)
{
  Region *r = ledger_regions();
  u32 before = ledger->regions;
  lock_cache();
  memset(seen, 0, sizeof seen);
  read_maps();
  for (u32 i = 0; i < before; i++)
    if (!r[i].dropped && (!seen[i] || !r[i].path[0])) { /* memory without a file may hold other code at the same place */
      translations_drop(i, 0, ~0ul);
      r[i].dropped = 1;
    }
  unlock_cache();
}

int regions_overlap(u64 start, u64 end)
{
  Region *r = ledger_regions();
  for (u32 i = 0; i < ledger->regions; i++)
    if (overlaps(&r[i], start, end))
      return 1;
  return 0;
}

/* What remains of a region goes on as one of its own, with its translations: other threads may be running them. */
static void remains(u32 from, u64 start, u64 end)
{
  Region *r = ledger_regions();
  int to = place();
  if (to < 0) {
    translations_drop(from, start, end);
    return;
  }
  r[to] = r[from];
  r[to].offset += start - r[from].start;
  r[to].start = start, r[to].end = end, r[to].dropped = 0;
  translations_move(from, to, start, end);
}

void regions_forget(u64 start, u64 end)
{
  Region *r = ledger_regions();
  for (u32 i = 0, n = ledger->regions; i < n; i++)
    if (overlaps(&r[i], start, end)) {
      translations_drop(i, start, end);
      if (r[i].start < start)
        remains(i, r[i].start, start);
      if (r[i].end > end)
        remains(i, end, r[i].end);
      r[i].dropped = 1;
    }
}
