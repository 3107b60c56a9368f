// Checks a launch, runs it, and returns its error.
#include <stdlib.h>
#include <string.h>

#include "hiding.h"
#include "observer.h"
#include "pool.h"
#include "runtime.h"

namespace hipcpu {

namespace {

bool is_valid(const dim3& grid, const dim3& block, size_t shared_bytes) {
  const uint64_t threads = static_cast<uint64_t>(block.x) * block.y * block.z;
  const bool empty = grid.x == 0 || grid.y == 0 || grid.z == 0 || threads == 0;
  const bool large = block.x > kMaxThreads || block.y > kMaxThreads || block.z > kMaxThreads ||
                     threads > kMaxThreads;
  // A grid counts its threads along x in 32 bits, and blocks along y and z in 16.
  const bool long_grid = static_cast<uint64_t>(grid.x) * block.x > UINT32_MAX ||
                         grid.y > UINT16_MAX || grid.z > UINT16_MAX;
  return !empty && !large && !long_grid && shared_bytes <= kMaxSharedBytes;
}

// With KABUILD_CPU_LAUNCHES=skip, launches are checked but run nothing: then outputs show only what
// host code has written.
bool g_launches_run = [] {
  const char* text = getenv("KABUILD_CPU_LAUNCHES");
  return text == nullptr || strcmp(text, "skip") != 0;
}();

bool run_visible(Job* job) {
  const Visible visible;
  hide_pinned();
  return visible.ok && run_job(job);
}

}  // namespace
}  // namespace hipcpu

using namespace hipcpu;

// Switches launches off and on again, for the calls that a runner's judge chooses.
extern "C" void hipcpu_enable_launches(int enabled) noexcept { g_launches_run = enabled != 0; }

extern "C" hipError_t hipcpu_launch(const dim3* grid, const dim3* block, size_t shared_bytes,
                                    hipStream_t, void (*body)(const void*),
                                    const void* arguments, uint32_t wave_size) noexcept {
  if (hipcpu_context.in_kernel) {
    hipcpu_fail("a kernel was launched from a kernel, which this platform does not support");
  }
  if (device_state() != hipSuccess) return record(device_state());
  if (!is_valid(*grid, *block, shared_bytes)) return record(hipErrorInvalidConfiguration);
  if (!g_launches_run) return hipSuccess;
  Job job = {};
  job.grid = *grid;
  job.block = *block;
  job.threads = block->x * block->y * block->z;
  job.wave_size = wave_size;
  job.shared_bytes = shared_bytes;
  job.body = body;
  job.arguments = arguments;
  job.blocks = static_cast<uint64_t>(grid->x) * grid->y * grid->z;
  observe_launch(job);
  const bool ran = run_visible(&job);
  observe_end(job);
  if (!ran) return record(hipErrorOutOfMemory);
  if (job.failed) {
    set_device_failed(true);
    return record(hipErrorLaunchFailure);
  }
  return hipSuccess;
}
