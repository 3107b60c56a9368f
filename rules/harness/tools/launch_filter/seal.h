// Puts this library's functions into the real driver's table of symbols.
#pragma once

// In the memory of this process, the driver's names of wrapped functions then lead to the wrappers.
// Under strict orders, unknown functions that could launch are refused. So it does not matter which
// library was loaded first, and a lookup in the driver itself does not get around the filter. False
// if the table cannot be read or written.
bool seal_driver();
