// A gate that the judge opens: later launches wait behind it. See runner_host/ and runner_cuda/.
#pragma once
#include <stdint.h>

// Maps the judge's page and closes its descriptor. False if this platform has no gate, or if its
// gate does not work; then `problem` is set.
bool open_gate(int fd, const char** problem);

// Fills the device until the judge writes this ticket into the page.
int shut_gate(int64_t ticket);

// Makes the device write into the page when all earlier launches are done.
int end_gate(int64_t ticket);

// Waits until the device is idle, and writes the ticket into the page. `elapsed_ns` is the time
// since `start_clock`. Returns the platform's hipError_t.
int pass_gate(int64_t ticket, int64_t* elapsed_ns);
