// The real driver, which this library is linked with under another name.
#pragma once

constexpr char kRealDriver[] = "libkabuild-driver.so";

// A handle of the driver for dlsym.
void* real_driver();

// A function of the driver; null if this driver has none of that name.
void* real_function(const char* name);
