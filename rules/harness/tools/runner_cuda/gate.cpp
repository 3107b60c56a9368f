// The page's layout and the kernel are those of gpu/gate_page.py and gpu/blocker.ptx.
#include "../runner/gate.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../runner/clock.h"
#include "driver.h"

namespace {

constexpr size_t kText = 4096;  // where the kernel's text begins
constexpr int kEnded = 16, kIdle = 32;  // offsets of the device's word and of the runner's
constexpr unsigned kMapped = 2;  // CU_MEMHOSTREGISTER_DEVICEMAP
constexpr int kThreadsOfBlock = 1, kProcessors = 16, kThreadsOfAll = 39;  // CUdevice_attribute
constexpr uint64_t kLimitNs = 20000000000;  // longer than a judge waits for queued work

volatile uint32_t* g_words;
cuda::Address g_word;
cuda::Function g_blocker, g_ended;
unsigned g_threads;
unsigned g_blocks;

unsigned attribute(int number) {
  int value = 0;
  cuda::driver().device_attribute(&value, number, cuda::kDevice);
  return static_cast<unsigned>(value);
}

// Chooses blocks that leave no thread of any multiprocessor free.
void find_shape() {
  const unsigned room = attribute(kThreadsOfAll), most = attribute(kThreadsOfBlock);
  unsigned each = 1;
  while (room % each != 0 || room / each > most) ++each;
  g_threads = room / each;
  g_blocks = each * attribute(kProcessors);
}

}  // namespace

bool open_gate(int fd, const char** problem) {
  const cuda::Driver& driver = cuda::driver();
  struct stat known = {};
  fstat(fd, &known);
  const size_t size = static_cast<size_t>(known.st_size);
  void* page = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (driver.module_load == nullptr) return false;
  cuda::Module module = nullptr;
  if (page == MAP_FAILED) {
    *problem = "the gate's page cannot be mapped\n";
  } else if (driver.host_register(page, size, kMapped) != cuda::kSuccess ||
             driver.host_address(&g_word, page, 0) != cuda::kSuccess) {
    *problem = "the gate's page cannot be shown to the device\n";
  } else if (driver.module_load(&module, static_cast<char*>(page) + kText) != cuda::kSuccess ||
             driver.module_function(&g_blocker, module, "blocker") != cuda::kSuccess ||
             driver.module_function(&g_ended, module, "ended") != cuda::kSuccess) {
    *problem = "the driver failed to compile the gate's kernels\n";
  } else {
    g_words = static_cast<volatile uint32_t*>(page);
    find_shape();
    return true;
  }
  return false;
}

int shut_gate(int64_t ticket) {
  uint32_t number = static_cast<uint32_t>(ticket);
  uint64_t limit = kLimitNs;
  void* arguments[] = {&g_word, &number, &limit};
  return cuda::driver().launch(g_blocker, g_blocks, 1, 1, g_threads, 1, 1, 0, stream(), arguments,
                               nullptr);
}

int end_gate(int64_t ticket) {
  cuda::Address word = g_word + kEnded * sizeof(uint32_t);
  uint32_t number = static_cast<uint32_t>(ticket);
  void* arguments[] = {&word, &number};
  return cuda::driver().launch(g_ended, 1, 1, 1, 1, 1, 1, 0, stream(), arguments, nullptr);
}

int pass_gate(int64_t ticket, int64_t* elapsed_ns) {
  const int error = cuda::driver().context_synchronize();
  g_words[kIdle] = static_cast<uint32_t>(ticket);
  return error != cuda::kSuccess ? error : stop_clock(elapsed_ns);
}
