// Errors of the API, and kernels that fail.
#include <stdio.h>
#include <unistd.h>

#include "runtime.h"

namespace hipcpu {

namespace {

__thread hipError_t last_error __attribute__((tls_model("initial-exec")));
uint32_t device_failed;  // a kernel has failed: whatever it computed is lost

}  // namespace

hipError_t record(hipError_t error) {
  if (error != hipSuccess) last_error = error;
  return error;
}

hipError_t device_state() {
  return __atomic_load_n(&device_failed, __ATOMIC_RELAXED) != 0 ? hipErrorLaunchFailure
                                                                : hipSuccess;
}

void set_device_failed(bool failed) {
  __atomic_store_n(&device_failed, failed ? 1 : 0, __ATOMIC_RELAXED);
  if (!failed) last_error = hipSuccess;
}

}  // namespace hipcpu

using namespace hipcpu;

extern "C" {

hipError_t hipPeekAtLastError(void) noexcept {
  return last_error != hipSuccess ? last_error : device_state();
}

hipError_t hipGetLastError(void) noexcept {
  const hipError_t error = hipPeekAtLastError();
  last_error = hipSuccess;
  return error;
}

#define HIPCPU_CASE_NAME(name, number, sentence) \
  case name:                                     \
    return #name;
const char* hipGetErrorName(hipError_t error) noexcept {
  switch (error) { HIPCPU_ERRORS(HIPCPU_CASE_NAME) }
  return "hipErrorUnknown";
}

#define HIPCPU_CASE_SENTENCE(name, number, sentence) \
  case name:                                         \
    return sentence;
const char* hipGetErrorString(hipError_t error) noexcept {
  switch (error) { HIPCPU_ERRORS(HIPCPU_CASE_SENTENCE) }
  return "unknown error";
}

void hipcpu_fail(const char* reason) noexcept {
  const Context& context = hipcpu_context;
  char line[512];
  const int length = snprintf(
      line, sizeof line, "hipcpu: %s; block (%u,%u,%u) thread (%u,%u,%u)\n", reason,
      context.block.x, context.block.y, context.block.z, context.thread.x, context.thread.y,
      context.thread.z);
  if (write(STDERR_FILENO, line, static_cast<size_t>(length)) < 0) {
    // stderr cannot be written; the error code tells the caller.
  }
  Worker& worker = *current_worker;
  __atomic_store_n(&worker.job->failed, 1, __ATOMIC_RELAXED);
  worker.done = true;
  yield_fiber(worker);
  __builtin_unreachable();
}

}
