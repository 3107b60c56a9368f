#include "../runner/launches.h"

#include <dlfcn.h>
#include <fcntl.h>

#include "../runner/protocol.h"
#include "driver.h"

const char* filter_launches(const char* candidate) {
  if (fcntl(protocol::kOrdersFd, F_GETFD) < 0) return nullptr;  // there is no filter
  using Filter = int (*)(int, int, const char*);
  void* found = dlsym(cuda::library(), "kabuild_filter_launches");
  if (found == nullptr) return "the launch filter is not in the driver's place\n";
  const int error = reinterpret_cast<Filter>(found)(protocol::kOrdersFd, protocol::kRecordFd,
                                                    candidate);
  return error == 0 ? nullptr : "the launch filter failed to start\n";
}
