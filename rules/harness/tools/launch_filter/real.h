// The driver behind this library, which it is linked with by a name of its own.
#pragma once

constexpr char kRealDriver[] = "libkabuild-driver.so";

// A handle of the driver for dlsym.
void* real_driver();

// A function of the driver; null where this driver has none of the name.
void* real_function(const char* name);
