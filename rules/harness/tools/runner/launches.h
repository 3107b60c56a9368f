// Which kernels the candidate may launch.
#pragma once

// From now on the launch filter, if the launcher has put one before the device's driver, decides
// about launches. Returns null, or what is wrong. `candidate` is its file, which is not loaded yet.
const char* filter_launches(const char* candidate);
