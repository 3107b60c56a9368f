#include "../runner/clock.h"

#include <dlfcn.h>
#include <time.h>

namespace {

using Synchronize = int (*)();
using Enable = void (*)(int enabled);

Synchronize g_synchronize;
Enable g_enable_launches;
int64_t g_started;

int64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

}  // namespace

const char* open_clock() {
  // Looked up before the candidate is loaded, since it could define them too.
  g_enable_launches = reinterpret_cast<Enable>(dlsym(RTLD_DEFAULT, "hipcpu_enable_launches"));
  g_synchronize = reinterpret_cast<Synchronize>(dlsym(RTLD_DEFAULT, "hipDeviceSynchronize"));
  return nullptr;
}

void* stream() { return nullptr; }  // the default stream

int start_clock() {
  g_started = now_ns();
  return 0;
}

int stop_clock(int64_t* elapsed_ns) {
  const int error = g_synchronize == nullptr ? 0 : g_synchronize();
  *elapsed_ns = now_ns() - g_started;
  return error;
}

bool enable_launches(bool enabled) {
  if (g_enable_launches != nullptr) g_enable_launches(enabled);
  return g_enable_launches != nullptr;
}

bool start_recording() { return false; }

bool replay(int64_t*) { return false; }
