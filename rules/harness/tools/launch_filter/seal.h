// Has the real driver's table of symbols name this library's functions.
#pragma once

// In the memory of this process, the driver's own names of wrapped functions become those of what
// stands before them; under strict orders unknown functions that could launch are refused. So the
// order in which both libraries were loaded does not matter, and whoever looks up a symbol in the
// driver itself finds no way around. False where the table cannot be written.
bool seal_driver();
