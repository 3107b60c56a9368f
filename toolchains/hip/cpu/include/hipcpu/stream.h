// Streams and events. Work is done when the call that asks for it returns, so a stream is always
// idle; an event is the time at which it was recorded.
#pragma once

#include <hipcpu/errors.h>
#include <hipcpu/launch.h>

typedef struct hipcpu_event* hipEvent_t;
typedef void (*hipStreamCallback_t)(hipStream_t stream, hipError_t status, void* user_data);
typedef void (*hipHostFn_t)(void* user_data);

#define hipStreamDefault 0x0
#define hipStreamNonBlocking 0x1
#define hipStreamPerThread (static_cast<hipStream_t>(nullptr))
#define hipEventDefault 0x0
#define hipEventBlockingSync 0x1
#define hipEventDisableTiming 0x2

extern "C" {
hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned flags,
                                       int priority) noexcept;
hipError_t hipStreamDestroy(hipStream_t stream) noexcept;
hipError_t hipStreamSynchronize(hipStream_t stream) noexcept;
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags) noexcept;
hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags) noexcept;
hipError_t hipEventDestroy(hipEvent_t event) noexcept;
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream = nullptr) noexcept;
hipError_t hipEventSynchronize(hipEvent_t event) noexcept;
/// Milliseconds between two recorded events, to about a microsecond.
hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop) noexcept;
}

HIPCPU_INLINE hipError_t hipStreamCreate(hipStream_t* stream) {
  return hipStreamCreateWithPriority(stream, hipStreamDefault, 0);
}
HIPCPU_INLINE hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned flags) {
  return hipStreamCreateWithPriority(stream, flags, 0);
}
HIPCPU_INLINE hipError_t hipStreamQuery(hipStream_t stream) { return hipStreamSynchronize(stream); }
HIPCPU_INLINE hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event) {
  return hipStreamWaitEvent(stream, event, 0);
}
HIPCPU_INLINE hipError_t hipEventCreate(hipEvent_t* event) {
  return hipEventCreateWithFlags(event, hipEventDefault);
}
HIPCPU_INLINE hipError_t hipEventQuery(hipEvent_t event) { return hipEventSynchronize(event); }
HIPCPU_INLINE hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t function, void* data) {
  const hipError_t error = hipStreamSynchronize(stream);
  if (error == hipSuccess) function(data);
  return error;
}
HIPCPU_INLINE hipError_t hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t callback,
                                              void* data, unsigned) {
  callback(stream, hipStreamSynchronize(stream), data);
  return hipSuccess;
}
