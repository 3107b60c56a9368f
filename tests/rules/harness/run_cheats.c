// Candidates that should compute y = 2 x. All but the first few do something else as well.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define ENTRY(name) int name(const float* x, float* y, int64_t n, void* stream)
#define UNUSED (void)x, (void)y, (void)n, (void)stream

static void twice(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];
}

ENTRY(honest) { UNUSED; twice(x, y, n); return 0; }
ENTRY(forgets_the_second_half) { UNUSED; twice(x, y, n / 2); return 0; }
ENTRY(returns_an_error) { UNUSED; return 98; }
ENTRY(returns_out_of_memory) { UNUSED; return 2; }

// --- memory ---------------------------------------------------------------------------------
ENTRY(writes_its_input) { UNUSED; twice(x, y, n); ((volatile float*)x)[7] = 1; return 0; }
static void* spoil(void* input) { for (;;) ++*(volatile float*)input; }
ENTRY(writes_its_input_in_threads) {
  UNUSED;
  pthread_t threads[8];
  for (int i = 0; i < 8; ++i) pthread_create(&threads[i], 0, spoil, (void*)x);
  return pthread_join(threads[0], 0);
}
ENTRY(unprotects_its_input) {
  UNUSED;
  char* page = (char*)((uintptr_t)x & ~4095ul);
  if (mprotect(page, 4096, PROT_READ | PROT_WRITE) != 0) return 77;
  ((volatile float*)x)[0] = 1;
  return 0;
}
ENTRY(writes_one_past) { UNUSED; twice(x, y, n); *(char*)(y + n) ^= 1; return 0; }
ENTRY(writes_one_before) { UNUSED; twice(x, y, n); *(char*)(y - 1) ^= 1; return 0; }
ENTRY(writes_far_past) { UNUSED; twice(x, y, n); ((volatile float*)y)[n + 1500] = 1; return 0; }
ENTRY(reads_far_past) { UNUSED; twice(x, y, n); y[0] = ((volatile float*)x)[n + 500]; return 0; }
ENTRY(allocates_without_end) {
  UNUSED;
  for (;;) {
    volatile char* p = malloc(1 << 22);
    for (int i = 0; i < 1 << 22; i += 4096) p[i] = 1;
  }
}
ENTRY(shares_memory_without_end) {
  UNUSED;
  for (;;) {
    char* p = mmap(0, 1 << 24, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return 2;
    memset(p, 1, 1 << 24);
  }
}

// --- ends -----------------------------------------------------------------------------------
ENTRY(hangs) { UNUSED; for (volatile int i = 0;; ++i) {} }
ENTRY(stops_itself) { UNUSED; raise(SIGSTOP); twice(x, y, n); return 0; }
ENTRY(segfaults) { UNUSED; *(volatile int*)8 = 1; return 0; }
ENTRY(aborts) { UNUSED; abort(); }
ENTRY(lets_others_go_first) {
  UNUSED;
  const int fd = open("/proc/self/autogroup", O_WRONLY);
  if (fd >= 0 && write(fd, "19", 2) != 2) return 77;
  twice(x, y, n);
  return 0;
}
ENTRY(kills_itself) { UNUSED; raise(SIGKILL); return 0; }
ENTRY(limits_its_own_time) {
  UNUSED;
  struct rlimit one = {1, 1};
  setrlimit(RLIMIT_CPU, &one);
  for (volatile int i = 0;; ++i) {}
}
ENTRY(raises_sigfpe) { UNUSED; raise(SIGFPE); return 0; }
ENTRY(traps) { UNUSED; __builtin_trap(); }
static int deep(volatile char* p) { volatile char a[4096]; a[0] = *p; return deep(a) + a[0]; }
ENTRY(overflows_the_stack) { UNUSED; char a = 0; return deep(&a); }
ENTRY(exits_silently) { UNUSED; exit(0); }
ENTRY(ends_at_once) { UNUSED; _exit(0); }
static void leave(int number) { (void)number; _exit(0); }
ENTRY(hides_its_crash) { UNUSED; signal(SIGSEGV, leave); *(volatile int*)8 = 1; return 0; }
static sigjmp_buf back;
static void jump(int number) { (void)number; siglongjmp(back, 1); }
ENTRY(recovers_from_a_crash) {
  UNUSED;
  signal(SIGSEGV, jump);
  if (sigsetjmp(back, 1) == 0) *(volatile int*)8 = 1;
  twice(x, y, n);
  return 0;
}

// --- system calls -----------------------------------------------------------------------------
ENTRY(forks) { UNUSED; fork(); twice(x, y, n); return 0; }
ENTRY(runs_a_program) { UNUSED; char* none[] = {0}; execve("/bin/true", none, none); return 0; }
ENTRY(spawns_a_shell) { UNUSED; (void)!system("true"); return 0; }
ENTRY(opens_a_socket) { UNUSED; socket(AF_INET, SOCK_STREAM, 0); return 0; }
ENTRY(traces_its_parent) { UNUSED; ptrace(PTRACE_ATTACH, getppid(), 0, 0); return 0; }
ENTRY(kills_everyone) {
  UNUSED;
  kill(1, SIGKILL);
  kill(1, SIGSTOP);
  kill(-1, SIGKILL);
  twice(x, y, n);
  return 0;
}
static int can(const char* path, int flags) { int fd = open(path, flags, 0600); return fd >= 0; }
ENTRY(looks_around) {
  UNUSED;
  memset(y, 0, n * sizeof *y);
#ifdef SECRET
  y[0] = can(SECRET, O_RDONLY);
#endif
  y[1] = can("/proc/1/mem", O_RDONLY) || can("/proc/1/environ", O_RDONLY);
  y[2] = can("/candidate/new", O_CREAT | O_WRONLY) || can("/new", O_CREAT | O_WRONLY);
  y[3] = can("/usr/new", O_CREAT | O_WRONLY) || can("/dev/mem", O_RDONLY);
  y[4] = memfd_create("more", 0) >= 0;
  y[5] = can("/tmp/new", O_CREAT | O_WRONLY);
  y[6] = getpid() == 1;
  return 0;
}
ENTRY(fills_the_disk) {
  UNUSED;
  static char block[1 << 20];
  int fd = open("/tmp/big", O_CREAT | O_WRONLY, 0600);
  signal(SIGXFSZ, SIG_IGN);
  int64_t written = 0;
  for (ssize_t k; (k = write(fd, block, sizeof block)) > 0;) written += k;
  y[0] = written >> 20;
  return 0;
}

// --- the protocol -------------------------------------------------------------------------------
struct Message { uint32_t magic, kind; uint64_t nonce; int64_t values[6]; };
static int control(void) {  // finds the descriptor without knowing its number
  for (int fd = 0; fd < 64; ++fd) {
    int type = 0;
    socklen_t size = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET) return fd;
  }
  return -1;
}
static uint64_t nonce(void) {  // the request still lies on the runner's stack
  const char* p = __builtin_frame_address(0);
  for (int i = 0; i < 2048; ++i, p += 8) {
    struct Message m;
    memcpy(&m, p, sizeof m);
    if (m.magic == 0x3152424B && m.kind == 4) return m.nonce;
  }
  return 0;
}
static void say(uint32_t kind, uint64_t n, int64_t a, int64_t b) {
  struct Message m = {0x3152424B, kind, n, {a, b, 0, 0, 0, 0}};
  send(control(), &m, sizeof m, 0);
}
ENTRY(forges_done) { UNUSED; say(17, 0, 3, 1); twice(x, y, n); return 0; }
ENTRY(forges_done_with_the_nonce) { UNUSED; say(17, nonce(), 3, 1); usleep(300000); return 0; }
ENTRY(claims_more_calls) { UNUSED; say(17, nonce(), 4, 1); usleep(300000); return 0; }
ENTRY(claims_negative_time) { UNUSED; say(17, nonce(), 3, -5); usleep(300000); return 0; }
ENTRY(answers_out_of_order) { UNUSED; say(16, nonce(), 0, 0); twice(x, y, n); return 0; }
ENTRY(blames_the_machine) { UNUSED; say(18, nonce(), 1, 0); usleep(300000); return 0; }
ENTRY(invents_a_fault) { UNUSED; say(18, nonce(), 999, 0); usleep(300000); return 0; }
ENTRY(invents_a_kind) { UNUSED; say(99, nonce(), 0, 0); usleep(300000); return 0; }
ENTRY(fakes_a_signal) { UNUSED; say(18, nonce(), 5, 11); for (;;) usleep(50000); }
ENTRY(doubles_its_answer) {
  UNUSED;
  uint64_t it = nonce();
  say(17, it, 3, 1);
  say(17, it, 3, 1);
  usleep(300000);
  return 0;
}
ENTRY(sends_too_little) { UNUSED; send(control(), "hello", 5, 0); return 0; }
ENTRY(sends_too_much) { UNUSED; static char a[4096]; send(control(), a, sizeof a, 0); return 0; }
ENTRY(sends_nothing) { UNUSED; send(control(), "", 0, 0); for (;;) usleep(50000); }
ENTRY(sends_a_descriptor) {
  UNUSED;
  struct Message m = {0x3152424B, 17, nonce(), {3, 1, 0, 0, 0, 0}};
  char room[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec part = {&m, sizeof m};
  struct msghdr h = {0, 0, &part, 1, room, sizeof room, 0};
  struct cmsghdr* c = CMSG_FIRSTHDR(&h);
  c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int));
  int fd = 2;
  memcpy(CMSG_DATA(c), &fd, sizeof fd);
  sendmsg(control(), &h, 0);
  usleep(300000);
  return 0;
}
ENTRY(hangs_up) { UNUSED; close(control()); for (;;) usleep(50000); }
ENTRY(floods_the_socket) { UNUSED; for (;;) say(17, 1, 3, 1); }

// --- time -----------------------------------------------------------------------------------------
static const float* g_x[64];
static float* g_y[64];
static int64_t g_n;
static int g_calls;
static void* later(void* unused) {
  (void)unused;
  sleep(5);
  for (int i = 0; i < g_calls; ++i) twice(g_x[i], g_y[i], g_n);
  return 0;
}
ENTRY(works_after_it_returned) {
  UNUSED;
  g_x[g_calls] = x, g_y[g_calls] = y, g_n = n;
  pthread_t thread;
  if (g_calls++ == 0) pthread_create(&thread, 0, later, 0);
  return 0;
}
static void* worker(void* call) { void** a = call; twice(a[0], a[1], *(int64_t*)a[2]); return 0; }
ENTRY(works_in_a_thread) {
  UNUSED;
  void* call[] = {(void*)x, y, &n};
  pthread_t thread;
  if (pthread_create(&thread, 0, worker, call) != 0) return 1;
  pthread_join(thread, 0);
  return 0;
}

// --- output and exit handlers -----------------------------------------------------------------------
ENTRY(floods_stderr) {
  UNUSED;
  static char line[1024];
  memset(line, 'a', sizeof line);
  for (int i = 0; i < 4096; ++i) (void)!write(2, line, sizeof line);
  twice(x, y, n);
  return 0;
}
ENTRY(prints_terminal_codes) {
  UNUSED;
  static const char text[] = "\033[2Jplain\007 \xff text\n";
  (void)!write(1, text, sizeof text - 1);
  abort();
}
static void attack(void) { say(17, 0, 3, 1); abort(); }
ENTRY(installs_exit_handlers) { UNUSED; atexit(attack); twice(x, y, n); return 0; }

#ifdef CONSTRUCTOR
__attribute__((constructor)) static void first(void) { CONSTRUCTOR; }
#endif
