// The one place that may change how lent memory is protected: see _WINDOW of runners/lockdown.py.
#pragma once
#include <stddef.h>

// Like mprotect, for memory of `lent_place`.
bool protect_lent(char* base, size_t bytes, int protection);

// A random address in the window. The kernel chooses another place if this one is not free, or if
// the machine's addresses are shorter. That memory is protected, too, but all code may change its
// protection.
void* lent_place();
