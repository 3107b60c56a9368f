// A runner whose judge hides memory: host code may learn `most` bytes of it. The process ends with
// kRefused if that is exceeded.
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

// As the runtime's hiding.h has them.
typedef struct {
  char* base;
  size_t bytes;
  int protection;
} Piece;
typedef struct {
  const Piece* all;
  const Piece* pieces;
  uint32_t all_count;
  uint32_t piece_count;
  bool hide;
  uint64_t most_copied;
  bool (*protect)(char* base, size_t bytes, int protection);
  void (*refuse)(uint64_t bytes);
} Loan;
bool hipcpu_begin_call(const Loan* loan);
int hipcpu_explain_fault(const void* address);

enum { kRefused = 77, kUnexplained = 78, kVisible = 1 };

static Piece g_lent;
static Loan g_loan;

static bool protect(char* base, size_t bytes, int protection) {
  return mprotect(base, bytes, protection) == 0;
}
static void refuse(uint64_t bytes) { _exit(kRefused); }
static void handle(int number, siginfo_t* info, void* context) {
  if (hipcpu_explain_fault(info->si_addr) != kVisible) _exit(kUnexplained);
}

// Returns the memory that it lends, which is hidden; null if something failed.
void* begin(uint64_t bytes, uint64_t most) {
  struct sigaction action = {0};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, NULL);
  char* lent = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (lent == MAP_FAILED) return NULL;
  g_lent = (Piece){lent, bytes, PROT_READ | PROT_WRITE};
  g_loan = (Loan){&g_lent, &g_lent, 1, 1, true, most, protect, refuse};
  return hipcpu_begin_call(&g_loan) ? lent : NULL;
}
