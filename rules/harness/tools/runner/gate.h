// A gate that the judge opens: what is launched behind it waits. runner_host/, runner_cuda/.
#pragma once
#include <stdint.h>

// Makes ready with the judge's page, whose descriptor is closed. False where this platform has no
// gate; `problem` says why it should have one and does not work.
bool open_gate(int fd, const char** problem);

// Fills the device until the judge writes this ticket into the page.
int shut_gate(int64_t ticket);

// Has the device say in the page when everything that was launched before has been done.
int end_gate(int64_t ticket);

// Waits until the device is idle and writes so into the page. How long everything since
// `start_clock` took goes into `elapsed_ns`. Gives the platform's hipError_t.
int pass_gate(int64_t ticket, int64_t* elapsed_ns);
