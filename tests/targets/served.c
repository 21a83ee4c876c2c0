/* A program to attach to: it waits for words on its input, does an exact amount of work for each, and answers with one line.
 *
 *   work N     N times WORK multiplications and as many additions of double, in this thread
 *   threads N  the same in each of three threads that sleep on a futex between the words
 *   fork N     in a forked child
 *   spawn N    in another copy of the program, by fork and exec
 *   signal N   in a handler, by raise
 *   code N     in code written at run time into one and the same page, N times anew: one multiplication each
 *   nest       go into a signal handler and wait for words there, until the word `back`
 *   die N      work, then SIGKILL
 *   end        say how often a system call was seen to be interrupted, and end
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORK 1000
#define WORKERS 3

static volatile double factor = 1.0, summand = 0.5;
static volatile sig_atomic_t amount, nested;
static volatile int interrupted, woken_early, ending;
static char *self;

static void work(int n)
{
  for (int i = 0; i < n; i++) {
    double x = 1.0, f = factor, s = summand;
    for (int k = 0; k < WORK; k++)
      x = x * f + s;
    if (x != 1.0 + WORK * 0.5)
      abort();
  }
}

/* ---- threads that work ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn, share, finished;

static void *worker(void *nothing)
{
  (void)nothing;
  pthread_mutex_lock(&mutex);
  for (int seen = 0;;) {
    while (turn == seen)
      pthread_cond_wait(&changed, &mutex);
    seen = turn;
    pthread_mutex_unlock(&mutex);
    work(share);
    pthread_mutex_lock(&mutex);
    finished++;
    pthread_cond_broadcast(&changed);
  }
}

static void work_in_threads(int n)
{
  pthread_mutex_lock(&mutex);
  share = n, finished = 0, turn++;
  pthread_cond_broadcast(&changed);
  while (finished < WORKERS)
    pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

/* ---- threads that sleep, and count how often they are woken without reason ---- */

static void check(long result)
{
  if (!ending && (result >= 0 || errno == EINTR))
    __atomic_fetch_add(&interrupted, 1, __ATOMIC_RELAXED);
}

static void *sleeping_in_read(void *fd) { char c; check(read(*(int *)fd, &c, 1)); return NULL; }
static void *sleeping_in_poll(void *fd) { struct pollfd p = {*(int *)fd, POLLIN, 0}; check(poll(&p, 1, 1000000)); return NULL; }
static void *sleeping_in_nanosleep(void *fd) { struct timespec t = {1000, 0}; (void)fd; check(nanosleep(&t, NULL)); return NULL; }
static void *sleeping_in_sigwait(void *fd) { sigset_t all; (void)fd; sigemptyset(&all); sigaddset(&all, SIGUSR2); check(sigwaitinfo(&all, NULL)); return NULL; }
static void *sleeping_in_sigsuspend(void *fd) { sigset_t all; (void)fd; sigfillset(&all); sigsuspend(&all); check(-1); return NULL; }

static void *sleeping_in_epoll(void *fd)
{
  struct epoll_event event = {.events = EPOLLIN};
  int set = epoll_create1(0);
  epoll_ctl(set, EPOLL_CTL_ADD, *(int *)fd, &event);
  check(epoll_wait(set, &event, 1, -1));
  return NULL;
}

/* Sleeps a known time, over and over: neither shorter nor much longer. */
static void *sleeping_in_turns(void *fd)
{
  (void)fd;
  for (;;) {
    struct timespec a, b, t = {0, 50000000};
    clock_gettime(CLOCK_MONOTONIC, &a);
    check(nanosleep(&t, NULL) == 0 ? (errno = 0, -1) : 0);
    clock_gettime(CLOCK_MONOTONIC, &b);
    if ((b.tv_sec - a.tv_sec) * 1000000000l + b.tv_nsec - a.tv_nsec < 50000000)
      woken_early++;
  }
}

/* ---- signals, run-time code ---- */

static void on_signal(int number) { (void)number; work(amount); }

static void serve(void);
static void on_nest(int number) { (void)number; nested++; serve(); nested--; }

static double run_time_code(int n)
{
  static unsigned char *page;
  if (!page)
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  double x = 1.0;
  for (int i = 0; i < n; i++) {
    static const unsigned char code[] = {0xF2, 0x0F, 0x59, 0xC1 /* mulsd xmm0, xmm1 */, 0xB8, 0, 0, 0, 0 /* mov eax, i */, 0xC3};
    memcpy(page, code, sizeof code);
    memcpy(page + 5, &i, 4);
    x = ((double (*)(double, double))page)(x, factor);
  }
  return x;
}

static void serve(void)
{
  char word[32];
  int n;
  while (scanf("%31s", word) == 1) {
    n = 0;
    if (!strcmp(word, "back"))
      return;
    if (strcmp(word, "end") && strcmp(word, "nest") && scanf("%d", &n) != 1)
      abort();
    if (!strcmp(word, "work"))
      work(n);
    else if (!strcmp(word, "threads"))
      work_in_threads(n);
    else if (!strcmp(word, "signal"))
      amount = n, raise(SIGUSR1);
    else if (!strcmp(word, "code"))
      run_time_code(n);
    else if (!strcmp(word, "die"))
      work(n), kill(getpid(), SIGKILL);
    else if (!strcmp(word, "fork") || !strcmp(word, "spawn")) {
      int status;
      pid_t child = fork();
      if (!child && word[0] == 's') {
        char number[16];
        snprintf(number, sizeof number, "%d", n);
        execl(self, self, number, NULL);
        _exit(1);
      }
      if (!child)
        work(n), _exit(7);
      if (waitpid(child, &status, 0) != child || status != 7 << 8)
        abort();
    } else if (!strcmp(word, "nest")) {
      printf("nested\n");
      fflush(stdout);
      raise(SIGALRM);
    } else if (!strcmp(word, "end")) {
      ending = 1;
      printf("interrupted %d, early %d\n", interrupted, woken_early);
      fflush(stdout);
      exit(0);
    }
    printf("%s %d\n", word, n);
    fflush(stdout);
  }
  exit(3);
}

int main(int argc, char **argv)
{
  self = "/proc/self/exe";
  if (argc > 1 && strcmp(argv[1], "sleepers")) {
    work(atoi(argv[1]));
    return 7;
  }
  struct sigaction nest = {.sa_handler = on_nest, .sa_flags = SA_ONSTACK};
  static char stack[1 << 16];
  stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
  sigaltstack(&other, NULL);
  sigaction(SIGALRM, &nest, NULL);
  signal(SIGUSR1, on_signal);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &blocked, NULL);
  pthread_t thread;
  for (int i = 0; i < WORKERS; i++)
    pthread_create(&thread, NULL, worker, NULL);
  if (argc > 1) {
    static int ends[2];
    if (pipe(ends))
      abort();
    void *(*sleepers[])(void *) = {sleeping_in_read, sleeping_in_poll, sleeping_in_nanosleep, sleeping_in_sigwait, sleeping_in_sigsuspend, sleeping_in_epoll, sleeping_in_turns};
    for (unsigned i = 0; i < sizeof sleepers / sizeof *sleepers; i++)
      pthread_create(&thread, NULL, sleepers[i], ends);
  }
  struct timespec moment = {0, 50000000};
  nanosleep(&moment, NULL); /* so that the threads have gone to sleep */
  printf("ready\n");
  fflush(stdout);
  serve();
}
