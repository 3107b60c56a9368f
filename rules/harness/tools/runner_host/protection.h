// The one place that may change how lent memory is protected: see _WINDOW of runners/lockdown.py.
#pragma once
#include <stddef.h>

// Like mprotect, for memory of `lent_place`.
bool protect_lent(char* base, size_t bytes, int protection);

// A random address in the window. The kernel takes another if this one is not free, or if its
// addresses are shorter; that memory is protected all the same, but other code may change its
// protection.
void* lent_place();
