// Whose kernels the candidate may launch.
#pragma once

// Has the library before the device's driver decide about launches from now on, where the launcher
// has put one there. Null, or what is wrong. `candidate` is its file, which is not loaded yet.
const char* filter_launches(const char* candidate);
