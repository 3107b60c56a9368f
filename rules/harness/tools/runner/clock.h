// The stream that a candidate gets, and the clock around its calls: runner_host/, runner_cuda/.
#pragma once
#include <stdint.h>

// Sets the platform up before anything hostile is loaded. Null, or why it cannot be used.
const char* open_clock();

// What a call gets as its hipStream_t.
void* stream();

// Both give the platform's hipError_t. `stop_clock` waits for all work that was begun, in
// whatever stream; what it waits for is part of the time.
int start_clock();
int stop_clock(int64_t* elapsed_ns);

// Has launches from now on have their effect, or none, so that an output shows what else writes it.
// False on platforms that cannot tell a library's launches.
bool enable_launches(bool enabled);

// Has launches recorded instead of run, up to `replay`, which runs them as one graph and times
// that. False where the platform, or what was called, cannot be recorded.
bool start_recording();
bool replay(int64_t* elapsed_ns);
