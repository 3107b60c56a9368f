// Puts this library's functions into the real driver's table of symbols.
#pragma once

// In the memory of this process, the driver's names of wrapped functions lead to the wrappers;
// under strict orders, unknown functions that could launch are refused. So it does not matter
// which library was loaded first, and looking up a symbol in the driver itself is no way around
// the filter. False if the table cannot be written.
bool seal_driver();
