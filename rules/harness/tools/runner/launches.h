// Which kernels the candidate may launch.
#pragma once

// Starts the launch filter, if the launcher has put one in front of the device's driver. Returns
// null, or what is wrong. `candidate` is the candidate's file, which is not loaded yet.
const char* filter_launches(const char* candidate);
