#include "real.h"

#include <dlfcn.h>

void* real_driver() {
  static void* driver = dlopen(kRealDriver, RTLD_NOW | RTLD_NOLOAD);
  return driver;
}

void* real_function(const char* name) { return dlsym(real_driver(), name); }
