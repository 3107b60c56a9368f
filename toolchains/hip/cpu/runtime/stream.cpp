// Streams, events, and the clock.
#include <stdlib.h>
#include <time.h>

#include "runtime.h"

// A stream has no state, only an identity.
struct hipcpu_stream {
  unsigned flags;
};

struct hipcpu_event {
  unsigned flags;
  bool recorded;
  long long nanoseconds;
};

using namespace hipcpu;

extern "C" {

long long hipcpu_clock() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000ll + now.tv_nsec;
}

hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned flags, int) noexcept {
  if (stream == nullptr || flags > hipStreamNonBlocking) return record(hipErrorInvalidValue);
  *stream = static_cast<hipStream_t>(malloc(sizeof(hipcpu_stream)));
  if (*stream == nullptr) return record(hipErrorOutOfMemory);
  (*stream)->flags = flags;
  return hipSuccess;
}

hipError_t hipStreamDestroy(hipStream_t stream) noexcept {
  if (stream == nullptr) return record(hipErrorInvalidHandle);
  free(stream);
  return hipSuccess;
}

hipError_t hipStreamSynchronize(hipStream_t) noexcept { return record(device_state()); }

hipError_t hipStreamWaitEvent(hipStream_t, hipEvent_t event, unsigned) noexcept {
  return record(event == nullptr ? hipErrorInvalidHandle : hipSuccess);
}

hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags) noexcept {
  if (event == nullptr || flags > (hipEventBlockingSync | hipEventDisableTiming)) {
    return record(hipErrorInvalidValue);
  }
  *event = static_cast<hipEvent_t>(malloc(sizeof(hipcpu_event)));
  if (*event == nullptr) return record(hipErrorOutOfMemory);
  **event = hipcpu_event{flags, false, 0};
  return hipSuccess;
}

hipError_t hipEventDestroy(hipEvent_t event) noexcept {
  if (event == nullptr) return record(hipErrorInvalidHandle);
  free(event);
  return hipSuccess;
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t) noexcept {
  if (event == nullptr) return record(hipErrorInvalidHandle);
  event->recorded = true;
  event->nanoseconds = hipcpu_clock();
  return record(device_state());
}

hipError_t hipEventSynchronize(hipEvent_t event) noexcept {
  return record(event == nullptr ? hipErrorInvalidHandle : device_state());
}

hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop) noexcept {
  if (milliseconds == nullptr) return record(hipErrorInvalidValue);
  const bool usable = start != nullptr && stop != nullptr && start->recorded && stop->recorded &&
                      ((start->flags | stop->flags) & hipEventDisableTiming) == 0;
  if (!usable) return record(hipErrorInvalidHandle);
  *milliseconds = static_cast<float>(stop->nanoseconds - start->nanoseconds) * 1e-6f;
  return hipSuccess;
}

}
