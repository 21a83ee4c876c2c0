/* An independent witness: runs a command one instruction at a time under ptrace (threads and children too) and
 * writes which instructions were retired how often.
 *
 * Usage: stepper OUT COMMAND [ARGUMENT...]. Each line of OUT: count, then the instruction's up to 15 bytes in hex
 * (with what follows it; the reader decodes). The exit code is the command's, or 128 + its signal. Some ten thousand
 * instructions a second.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOTS (1 << 18)
#define TASKS 4096

struct seen {
    unsigned long address, count;
    unsigned char bytes[15];
};
static struct seen table[SLOTS];

struct task {
    pid_t id;
    int stepping;  /* the last continuation was a step over the instruction below */
    int delivered; /* ... and it delivered a signal, so a stop may be the entry of its handler */
    unsigned long address;
    unsigned char bytes[15];
};
static struct task tasks[TASKS];

static struct task *find(pid_t id) {
    struct task *unused = NULL;
    for (int i = 0; i < TASKS; i++) {
        if (tasks[i].id == id)
            return &tasks[i];
        if (tasks[i].id == 0 && unused == NULL)
            unused = &tasks[i];
        if (tasks[i].id == 0 && i > 256)
            break;
    }
    memset(unused, 0, sizeof *unused);
    unused->id = id;
    return unused;
}

static void count(const struct task *task) {
    unsigned long key = task->address * 0x9e3779b97f4a7c15UL ^ *(const unsigned *)task->bytes * 0x85ebca6bUL;
    for (unsigned long slot = key >> 40;; slot++) {
        struct seen *entry = &table[slot % SLOTS];
        if (entry->count == 0) {
            entry->address = task->address;
            memcpy(entry->bytes, task->bytes, 15);
        } else if (entry->address != task->address || memcmp(entry->bytes, task->bytes, 15) != 0) {
            continue;
        }
        entry->count++;
        return;
    }
}

static void step(struct task *task, int deliver) {
    task->address = (unsigned long)ptrace(PTRACE_PEEKUSER, task->id, offsetof(struct user_regs_struct, rip), 0);
    memset(task->bytes, 0, 15);
    struct iovec to = {task->bytes, 15}, from = {(void *)task->address, 15};
    if (process_vm_readv(task->id, &to, 1, &from, 1, 0) < 15) { /* the page ends here */
        from.iov_len = to.iov_len = 4096 - (task->address & 4095) < 15 ? 4096 - (task->address & 4095) : 15;
        process_vm_readv(task->id, &to, 1, &from, 1, 0);
    }
    task->stepping = 1;
    task->delivered = deliver;
    if (ptrace(PTRACE_SINGLESTEP, task->id, 0, (long)deliver) != 0 && errno == ESRCH)
        task->stepping = 0;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    pid_t first = fork();
    if (first == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    int status, code = 0;
    waitpid(first, &status, 0);
    ptrace(PTRACE_SETOPTIONS, first, 0,
           PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
    ptrace(PTRACE_CONT, first, 0, 0);
    for (pid_t id; (id = waitpid(-1, &status, __WALL)) > 0;) {
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (id == first)
                code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            find(id)->id = 0;
            continue;
        }
        struct task *task = find(id);
        int signal = WSTOPSIG(status), event = status >> 16;
        if (event != 0) { /* the system call that is being stepped over goes on */
            if (event == PTRACE_EVENT_EXEC)
                task->stepping = 0;
            ptrace(PTRACE_SINGLESTEP, id, 0, 0);
            continue;
        }
        siginfo_t info;
        if (ptrace(PTRACE_GETSIGINFO, id, 0, &info) != 0) { /* a group stop */
            ptrace(PTRACE_SINGLESTEP, id, 0, 0);
            continue;
        }
        int trap = signal == SIGTRAP && info.si_code != SI_KERNEL && info.si_code != SI_TKILL && info.si_code != SI_USER;
        if (trap && task->stepping) {
            if (!(task->delivered && info.si_code == SIGTRAP)) /* else: the handler's entry, nothing was retired */
                count(task);
            step(task, 0);
        } else if (trap || (signal == SIGSTOP && !task->stepping)) { /* a new program, thread or child */
            step(task, 0);
        } else {
            step(task, signal);
        }
    }
    FILE *out = fopen(argv[1], "w");
    for (int i = 0; i < SLOTS; i++)
        if (table[i].count) {
            fprintf(out, "%lu ", table[i].count);
            for (int b = 0; b < 15; b++)
                fprintf(out, "%02x", table[i].bytes[b]);
            fprintf(out, "\n");
        }
    return fclose(out) ? 2 : code;
}
