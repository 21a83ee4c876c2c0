/* The engine: runs every basic block of a thread from a translated copy, and counts how often each one ran.
 *
 * It knows nothing about what an instruction is worth: it is told which opcodes are of interest (a bit map), counts the blocks that
 * hold one, and leaves addresses, bytes and counts in a shared file, the ledger. It uses no libc, no heap and no vector register.
 *
 *   decode.c     how long an instruction is, and what kind of branch
 *   cache.c      where translated blocks live, how they are found, linked and dropped
 *   regions.c    which code is mapped where
 *   translate.c  a basic block -> its translation
 *   counting.c   its counters
 *   instructions.c  its instructions
 *   gates.c      the borders between translated code, the engine and native code (assembly)
 *   syscalls.c   what must be seen of the program's system calls
 *   signals.c    handlers run translated too
 *   cuts.c       blocks that a signal leaves in the middle
 *   altstack.c   and on which stack
 *   threads.c    one context for each thread
 *   ledger.c     the shared file
 *   dispatch.c   what happens between translated blocks
 *   imports.c    Python's imports run natively
 *   entry.c      how the engine gets hold of a process that it was preloaded into
 *   called.c     counting inside a running process, by calls
 *   attached.c   counting in a running process, from outside
 */
#ifndef FLOPWATCH_ENGINE_H
#define FLOPWATCH_ENGINE_H

#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t i32;
typedef int64_t i64;

#define API __attribute__((visibility("default")))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* ---- raw.c: system calls and memory, without libc ---- */

static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
  long ret;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall" : "=a"(ret) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return ret;
}
#define SYS(n, ...) SYS_(n, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define SYS0(n) sys6((n), 0, 0, 0, 0, 0, 0)
#define SYS_(n, a, b, c, d, e, f, ...) sys6((n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

void *memcpy(void *to, const void *from, size_t n);
void *memset(void *to, int byte, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t text_length(const char *s);
int text_starts(const char *s, const char *prefix);
char *text_add(char *to, const char *s);          /* returns the new end */
char *text_add_number(char *to, u64 n);
char *text_add_hex(char *to, u64 n);

/* ---- the context of one thread; gs points at it ---- */

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 };

/* offsets that translated code and the gates use */
#define C_SELF 0
#define C_NEXT 8
#define C_TARGET 16
#define C_EXIT 24
#define C_S0 32 /* rax while a gate or a lookup is under way */
#define C_S1 40 /* rcx */
#define C_S2 48 /* rdx */
#define C_S3 56 /* the register borrowed for far data */
#define C_GATE_DISPATCH 64
#define C_GATE_SYSCALL 72
#define C_GATE_CPUID 80
#define C_GATE_CHECK 88
#define C_STACK 96
#define C_REGS 104 /* 16 registers */
#define C_FLAGS 232
#define C_U 240 /* 7 slots of the unblocking stub */
#define C_NEXT2 296
#define C_CHILD 304
#define C_MASK 312
#define C_RESUME 320
#define C_GATE_CLONED 328
#define C_GATE_IMPORT 336

#define C_MASKED 512

#define IBL_BITS 16
#define IBL_BYTES (8 << IBL_BITS)
#define TAGS_OFFSET (256 * 1024) /* from the context: minus the addresses that indirect branches go to, by their low bits */
#define LANDINGS_OFFSET (TAGS_OFFSET + IBL_BYTES) /* and where their translations are entered */
#define COUNTERS_OFFSET (LANDINGS_OFFSET + IBL_BYTES)
#define MAX_BLOCKS (1 << 20)
#define MAX_LANES (1 << 18)
#define COUNTERS_BYTES (8 * MAX_BLOCKS)
#define LANES_OFFSET (COUNTERS_OFFSET + COUNTERS_BYTES)
#define LANES_BYTES (8 * MAX_LANES)
#define CONTEXT_BYTES (LANES_OFFSET + LANES_BYTES)
#define MAX_PENDING 16

typedef struct Context {
  u64 self, next, target, exit;
  u64 s0, s1, s2, s3;
  u64 gate_dispatch, gate_syscall, gate_cpuid, gate_check;
  u64 stack;
  u64 r[16];
  u64 flags;
  u64 u[7];
  u64 next2, child, mask;
  u64 resume;            /* application address after a native call of the engine's own functions */
  u64 gate_cloned, gate_import;
  /* from here on only C looks */
  u32 tid;
  u32 slot;              /* in the ledger's table of threads */
  volatile u32 alive;    /* the context is in use */
  volatile u32 native;   /* the thread runs outside the translation */
  volatile u32 starting; /* a child that has not yet taken its context */
  u32 pid;
  u32 parent_pid;
  u32 told;              /* that this child is lost: a search through PATH tries to execute many times */
  u32 shares_memory;     /* a vfork child: another process in the same memory */
  u64 after;             /* where a new thread goes on */
  u32 pending_count;
  u32 masked __attribute__((aligned(C_MASKED))); /* signals are blocked until the engine leaves */
  u8 pending[MAX_PENDING][128];
  volatile u32 importing; /* it runs outside, but comes back by itself */
  u64 paused_at;         /* cycles, when a native import began */
  u64 alt_start, alt_bytes; /* the alternate stack of signal handlers */
  u32 alt_entered;       /* a handler runs on it, or was left by a jump */
  void *actions;         /* of the thread's process, NULL: the common table */
  u64 *last;             /* counts at the last settlement, blocks then lanes */
  void *own_actions;     /* room for the table of a process that shares memory but no handlers */
} Context;

_Static_assert(offsetof(Context, s0) == C_S0, "s0");
_Static_assert(offsetof(Context, gate_dispatch) == C_GATE_DISPATCH, "gates");
_Static_assert(offsetof(Context, gate_check) == C_GATE_CHECK, "gates");
_Static_assert(offsetof(Context, stack) == C_STACK, "stack");
_Static_assert(offsetof(Context, r) == C_REGS, "registers");
_Static_assert(offsetof(Context, flags) == C_FLAGS, "flags");
_Static_assert(offsetof(Context, u) == C_U, "unblock slots");
_Static_assert(offsetof(Context, next2) == C_NEXT2, "next2");
_Static_assert(offsetof(Context, child) == C_CHILD, "child");
_Static_assert(offsetof(Context, mask) == C_MASK, "mask");
_Static_assert(offsetof(Context, masked) == C_MASKED, "masked");
_Static_assert(offsetof(Context, gate_import) == C_GATE_IMPORT, "gates");

static inline u64 *counters_of(Context *c) { return (u64 *)((u8 *)c + COUNTERS_OFFSET); }
static inline u64 *lanes_of(Context *c) { return (u64 *)((u8 *)c + LANES_OFFSET); }

#define MAX_CONTEXTS 4096
extern Context *contexts[MAX_CONTEXTS];
extern volatile u32 context_count;

/* ---- decode.c ---- */

enum Kind {
  K_PLAIN, K_JCC, K_JMP, K_CALL, K_JMP_INDIRECT, K_CALL_INDIRECT, K_RET, K_LOOP /* loop, loope, loopne, jrcxz */, K_SYSCALL, K_CPUID,
  K_XBEGIN, K_TRAP /* ud2, hlt, int3: goes on only through a handler */, K_UNSUPPORTED /* far transfers, int 0x80, unknown encodings */
};
enum Encoding { ENC_LEGACY, ENC_VEX, ENC_EVEX, ENC_XOP };

typedef struct Instruction {
  u64 address;
  u64 branch;      /* target of a direct branch */
  u8 length, kind, encoding, map, opcode;
  u8 prefixes;     /* bytes of legacy prefixes, without REX */
  u8 rex;          /* the REX byte, or 0 */
  u8 opcode_at;    /* offset of the opcode byte (for VEX and the like too) */
  u8 modrm_at;     /* 0: none */
  u8 displacement_at; /* 0: none, otherwise of the four bytes of a RIP-relative operand */
  u8 address32;    /* 67 prefix */
  u8 operand16;    /* 66 prefix */
  u8 repeat;       /* F2 or F3 */
  u8 mask;         /* EVEX opmask register, 0: none */
} Instruction;

int decode(const u8 *code, u64 address, Instruction *out); /* length, or 0 */

/* ---- regions.c ---- */

#define MAX_REGIONS 8192
/* How a change of writable code is noticed: its pages are made read-only and a write faults; or every run compares the bytes. */
enum Guard { GUARD_NONE, GUARD_PROTECT, GUARD_COMPARE, GUARD_STEP /* code that changes itself: each instruction is a block */ };
#define MANY_FAULTS 400 /* of one region: code and data share pages there, comparing is cheaper */

typedef struct Region {
  u64 start, end, offset;
  u32 writable;    /* its code may change without a system call: enum Guard */
  u32 dropped;
  char path[216];
  u64 faults;
} Region;

int region_of(u64 address); /* index in the ledger's table, or -1: not executable */
void regions_unguard(void);
void regions_receive(u64 start, u64 bytes);
void regions_receive_parts(const u64 *starts_and_bytes, u64 n);
void region_step(u64 address); /* code changes itself there */
int region_written(u64 address); /* a write faulted: was it our protection, so that it need only be done again? */
void region_protect(u64 start, u64 end);
void regions_check(void); /* mappings may have changed unseen: drop what is no longer there */
int regions_overlap(u64 start, u64 end);
void regions_forget(u64 start, u64 end); /* the mapping changes: drop it there with its translations; the cache is locked */

/* ---- cache.c ---- */

typedef struct Exit {
  u64 target;  /* application address */
  u64 patch;   /* address of the 32-bit displacement to link, 0: never link */
} Exit;

#define LEAVE 1 /* as Exit.patch: run natively from here on, the engine cannot follow */

#define PAUSE_BYTES 24 /* of the code that stops, just before `resume` */
/* Where translated code stops to let the engine do something. */
typedef struct Pause {
  u64 resume;  /* translated code: the instruction itself */
  u64 after;   /* translated code behind it */
  u64 pc;      /* application address behind it, or of the block to check */
  u64 bytes, length; /* of the block to check */
} Pause;

typedef struct Translation {
  u64 pc, code;
  u32 length, region;
  u32 next;    /* in the same region */
  u32 bytes;   /* of application code, for the check of writable code */
  u32 block;   /* 1 + its index in the ledger, 0: without a counter */
  u64 counted; /* translated code from here on runs when the count has been made */
  const u8 *layout; /* bytes before the first instruction, then of each instruction: as the program has it, as translated; ends with 0 */
} Translation;

extern u8 *cache_start, *cache_end;
extern u8 *emit; /* where the next byte of translated code goes */
int cache_open(void);
void cache_fork(void);
int cache_room(void);
u8 *stub_alloc(size_t n);
void lock_cache(void);
void unlock_cache(void);
int try_lock_cache(void);
int cache_reset(void); /* only while no thread is inside */
u64 cache_left(void);  /* bytes */
u64 lookup(u64 pc);
u32 translation_add(u64 pc, u64 code, u32 bytes, u32 region);
void translation_end(u32 index, u32 length, const u8 *layout);
void translation_counts(u32 index, u32 block, u64 counted);
void translations_publish(void);
const Translation *translation_at(u64 code);
void translations_drop(u32 region, u64 start, u64 end);
void translations_move(u32 from, u32 to, u64 start, u64 end);
u64 application_pc(u64 code); /* the instruction that a cache address belongs to, 0: none */
void link_exit(Exit *e, u64 code);
u8 *exit_stub(u64 target, u8 *patch);
void ibl_set(Context *c, u64 pc, u64 code);
void lookups_forget(void);
extern u64 unblock_entry, unblock_end, clone_entry;
static inline int in_cache(u64 a) { return a >= (u64)cache_start && a < (u64)cache_end; }

/* emitters */
static inline void e1(u8 b) { *emit++ = b; }
static inline void e4(u32 v) { memcpy(emit, &v, 4); emit += 4; }
static inline void e8(u64 v) { memcpy(emit, &v, 8); emit += 8; }
void emit_store(int reg, u32 slot); /* mov gs:[slot], reg */
void emit_load(int reg, u32 slot);  /* mov reg, gs:[slot] */
void emit_jump_slot(u32 slot);      /* jmp gs:[slot] */
void emit_jump_to(u8 *to);          /* jmp rel32 inside the cache */
u8 *emit_jump_linkable(int opcode); /* jmp (0xE9) or jcc (0x80..0x8F); returns the address of its displacement, kept inside a cache line */
void emit_align(void);
void emit_lookup(void);
void emit_common(void);             /* the shared pieces: lookup of indirect branches, unblocking, clone */

/* ---- counting.c ---- */

int is_interesting(const Instruction *i);
u8 *emit_count(u32 slot, const Instruction *list, int n); /* the block's run; returns where the count has been made */
void emit_active_lanes(const Instruction *i, u32 slot);

/* ---- instructions.c ---- */

void emit_plain(const Instruction *i, const u8 *code);
u64 emit_end(const Instruction *i, const u8 *code); /* of a block; returns where it falls through to, or 0 */
void emit_exit(u64 target);
Pause *emit_pause(u32 gate, u64 pc);

/* ---- translate.c ---- */

u64 translate(u64 pc);
extern u8 interesting[1024]; /* kind x map x opcode, see flopwatch.flops.opcode_filter */

/* ---- gates.c (assembly) and what they call ---- */

void gate_dispatch(void);
void gate_syscall(void);
void gate_cpuid(void);
void gate_check(void);
void gate_child(void);
void gate_cloned(void);
void gate_import(void);
void resume_import(void);      /* where a native import comes back */
void enter_translation(void);  /* go on at context->target, with the registers as they are */
void reenter(void);            /* where a native call from translated code comes back */
void nested_return(void);
extern const u8 gate_return[] __attribute__((visibility("hidden"))), gate_return_end[] __attribute__((visibility("hidden")));
extern const u8 unless_signalled_end[] __attribute__((visibility("hidden"))), unless_signalled_not[] __attribute__((visibility("hidden")));
#define SIGNALLED (-512) /* what unless_signalled says instead of a result */
long unless_signalled(const u32 *kept, long number, long a, long b, long c, long d, long e);
void flopwatch_end(void);
void restorer(void);
long run_nested(Context *c, u64 handler, long signal, void *info, void *context_of_signal);
void engine_dispatch(Context *c);
void leave(Context *c, u64 pc); /* the translation, for good */
void engine_syscall(Context *c);
void engine_cpuid(Context *c);
void engine_check(Context *c);
void engine_child(Context *c);
void engine_cloned(Context *c);
void engine_import(Context *c);
void engine_resume(Context *c);
void engine_signal(int signal, void *info, void *uc);
static inline Context *current(void) { Context *c; __asm__ volatile("mov %%gs:0, %0" : "=r"(c)); return c; }
Context *current_or_null(void); /* safe in a thread that was never followed */
extern const u8 __ehdr_start[] __attribute__((visibility("hidden"))), etext[] __attribute__((visibility("hidden"))); /* the linker's */
static inline int in_engine(u64 a) { return a >= (u64)__ehdr_start && a < (u64)etext; }

enum How { HOW_SPAWN, HOW_FORK, HOW_EXEC, HOW_ATTACH, HOW_CALLED, HOW_VFORK };
enum State { STATE_RUNNING = 1, STATE_FINISHED, STATE_EXEC, STATE_STOPPED /* the counting ended, the process goes on */ };
enum ThreadState { THREAD_FREE, THREAD_RUNNING, THREAD_ENDED, THREAD_LEFT, THREAD_EXEC /* of a vfork child */ };

/* ---- threads.c ---- */

#define GETTID 186
#define GETPID 39

Context *context_new(void);
int context_attach_slot(Context *c, enum How how);
void context_enter(Context *c); /* gs := c */
void contexts_fork(Context *survivor);
void context_end(Context *c);
extern volatile u32 stopping;

/* ---- signals.c ---- */

void signals_open(void);
void signals_close(void);
void signals_guard(void);
void signals_watch(void);
void signals_unwatch(void);
int signals_apart(Context *parent, Context *child); /* what the child does with its handlers is its own affair */
long signal_action(Context *c, int signal, const void *act, void *old, u64 size);
void deliver_pending(Context *c);
extern volatile u32 signals_taken;

/* ---- cuts.c ---- */

typedef struct Cut {
  u64 *whole, *part; /* counters of the block and of its beginning, NULL: nothing to set right */
} Cut;

Cut cut(Context *c, u64 code, u64 pc); /* a block was left before `pc`: count only its beginning */
void cut_undo(Cut made);                /* it goes on after all */

/* ---- altstack.c ---- */

void altstack_take(Context *c);
void altstack_give_back(Context *c);
long altstack_change(Context *c, const void *new, void *old, u64 rsp);
u32 altstack_enter(Context *c, u64 frame);
void altstack_remind(Context *c);

/* ---- ledger.c ---- */


#define LEDGER_VERSION 1
typedef struct LedgerHeader {
  char magic[8];
  u32 version, state, pid, parent, how, exit_code;
  u64 blocks, code_bytes, regions, threads, lanes, notes;
  u64 translated;  /* blocks in all, with and without a counter */
  u64 overflow;    /* blocks, threads or regions that found no room */
  u64 imports;     /* Python imports that ran natively */
  u64 lost_children; /* without a ledger of their own */
  u64 hidden;      /* bits: what cpuid did not show to the program, rows of dispatch.c */
  u64 unsaved;     /* pages of this file that found no room on its disk */
  char command[1024];
  char executing[1024]; /* path of the execve under way */
} LedgerHeader;

typedef struct LedgerThread {
  u32 tid, state, pid, how;
  char name[16];
  char executing[32]; /* of a vfork child: the end of the path that it executed */
} LedgerThread;

typedef struct LedgerBlock {
  u64 address;
  u32 code_at;
  u16 length, masked; /* masked instructions in it */
  u32 first_lane, region;
  u64 unused;
} LedgerBlock;

#define L_NOTES 0x1000
#define NOTE_BYTES 256
#define MAX_NOTES 64
#define L_THREADS 0x10000
#define MAX_THREADS 4096
#define L_REGIONS 0x60000
#define L_BLOCKS 0x300000
#define L_CODE (L_BLOCKS + 32 * MAX_BLOCKS)
#define CODE_BYTES (64 << 20)
#define L_AREAS (L_CODE + CODE_BYTES)
#define AREA_BYTES (COUNTERS_BYTES + LANES_BYTES)

extern LedgerHeader *ledger;
int ledger_open(const char *directory, enum How how);
int ledger_fork(Context *c);
int ledger_map_area(Context *c); /* the counters of the context's slot */
int ledger_full(u64 address); /* a write to the ledger met a full disk: it goes on in private memory */
void note(const char *text, u64 number);
static inline LedgerThread *ledger_threads(void) { return (LedgerThread *)((u8 *)ledger + L_THREADS); }
static inline Region *ledger_regions(void) { return (Region *)((u8 *)ledger + L_REGIONS); }
static inline LedgerBlock *ledger_blocks(void) { return (LedgerBlock *)((u8 *)ledger + L_BLOCKS); }
static inline u8 *ledger_code(void) { return (u8 *)ledger + L_CODE; }
extern char ledger_directory[512];

/* ---- imports.c ---- */

extern u64 import_function; /* 0: none known */
extern u32 count_imports;
void imports_look(const Region *r);

/* ---- called.c ---- */

int follow_thread(u32 tid);

/* ---- entry.c ---- */

extern char own_path[512];
int read_filter(const char *directory);
Context *start(enum How how);
void follow_child_of_exec(Context *c); /* rewrites the arguments of execve so that the new image is followed */

#endif
