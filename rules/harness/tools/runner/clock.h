// The candidate's stream, and the clock around its calls. See runner_host/ and runner_cuda/.
#pragma once
#include <stdint.h>

// Sets up the platform before anything hostile is loaded. Returns null, or why that failed.
const char* open_clock();

// The hipStream_t that is passed to each call.
void* stream();

// Both return the platform's hipError_t. `stop_clock` waits for all work in all streams, and that
// wait is part of the time.
int start_clock();
int stop_clock(int64_t* elapsed_ns);

// Switches the effect of launches on or off; without launches, an output shows what else writes it.
// False on platforms that cannot recognise a library's launches.
bool enable_launches(bool enabled);

// Records launches instead of running them, up to `replay`, which runs them as one graph and times
// it. False if the platform or the call cannot be recorded.
bool start_recording();
bool replay(int64_t* elapsed_ns);
