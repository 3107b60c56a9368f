// Reports a fatal signal to the judge before the process dies of it.
#pragma once
#include "mapping.h"

// Installs the handlers. `buffers` explains addresses; `nonce` is that of the current request.
void report_crashes(const Buffers* buffers, const volatile uint64_t* nonce);
