#include "../runner/clock.h"

#include "driver.h"

namespace {

cuda::Stream g_stream;
cuda::Event g_start;
cuda::Event g_stop;

constexpr double kNanoseconds = 1e6;  // in a millisecond, the driver's unit

// Waits for `stream` and all others, then takes the time since `start_clock`.
int elapsed(int64_t* elapsed_ns) {
  const cuda::Driver& driver = cuda::driver();
  float milliseconds = 0;
  // All streams first, and only then the event, so that work in other streams is timed too. This
  // costs about ten microseconds per batch.
  int error = driver.context_synchronize();
  if (error == cuda::kSuccess) error = driver.event_record(g_stop, g_stream);
  if (error == cuda::kSuccess) error = driver.event_synchronize(g_stop);
  if (error == cuda::kSuccess) error = driver.event_elapsed(&milliseconds, g_start, g_stop);
  *elapsed_ns = static_cast<int64_t>(milliseconds * kNanoseconds);
  return error;
}

}  // namespace

const char* open_clock() {
  const char* missing = cuda::load();
  if (missing != nullptr) return missing;
  const cuda::Driver& driver = cuda::driver();
  cuda::Context context = nullptr;
  int device = 0;
  if (driver.init(0) != cuda::kSuccess) return "cuInit failed\n";
  if (driver.device_get(&device, cuda::kDevice) != cuda::kSuccess) return "no device\n";
  // Set before the context exists: a thread that sleeps would add its wake-up time.
  driver.context_set_flags(device, cuda::kSpin);
  // The primary context, which the runtime in the candidate's library uses too.
  if (driver.context_retain(&context, device) != cuda::kSuccess) return "no context\n";
  if (driver.context_set_current(context) != cuda::kSuccess) return "the context cannot be made current\n";
  // Not "non-blocking", so that launches into the default stream are waited for.
  if (driver.stream_create(&g_stream, 0) != cuda::kSuccess) return "no stream\n";
  if (driver.event_create(&g_start, 0) != cuda::kSuccess) return "no event\n";
  if (driver.event_create(&g_stop, 0) != cuda::kSuccess) return "no event\n";
  return nullptr;
}

void* stream() { return g_stream; }

int start_clock() { return cuda::driver().event_record(g_start, g_stream); }

int stop_clock(int64_t* elapsed_ns) { return elapsed(elapsed_ns); }

bool enable_launches(bool) { return false; }

bool start_recording() {
  return cuda::driver().capture_begin(g_stream, cuda::kRelaxedCapture) == cuda::kSuccess;
}

bool replay(int64_t* elapsed_ns) {
  const cuda::Driver& driver = cuda::driver();
  cuda::Graph graph = nullptr;
  cuda::GraphExec executable = nullptr;
  if (driver.capture_end(g_stream, &graph) != cuda::kSuccess || graph == nullptr) return false;
  bool ran = driver.graph_instantiate(&executable, graph, 0) == cuda::kSuccess;
  if (ran) {
    float milliseconds = 0;
    // The first of the two hides the host's time to launch the second.
    ran = driver.graph_upload(executable, g_stream) == cuda::kSuccess &&
          driver.context_synchronize() == cuda::kSuccess &&
          driver.graph_launch(executable, g_stream) == cuda::kSuccess &&
          start_clock() == cuda::kSuccess &&
          driver.graph_launch(executable, g_stream) == cuda::kSuccess &&
          driver.event_record(g_stop, g_stream) == cuda::kSuccess &&
          driver.context_synchronize() == cuda::kSuccess &&
          driver.event_elapsed(&milliseconds, g_start, g_stop) == cuda::kSuccess;
    *elapsed_ns = static_cast<int64_t>(milliseconds * kNanoseconds);
    driver.graph_exec_destroy(executable);
  }
  driver.graph_destroy(graph);
  return ran;
}
