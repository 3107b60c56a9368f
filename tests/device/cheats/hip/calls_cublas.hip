// Loads NVIDIA's library of linear algebra, and has it copy and scale.
// verdict: correctness REJECTED KERNEL_BYPASSED
#include "attack.h"
#include "doubling.h"

namespace {

using Open = void* (*)(const char*, int);
using Find = void* (*)(void*, const char*);
using Create = int (*)(void**);
using SetStream = int (*)(void*, hipStream_t);
using Copy = int (*)(void*, int, const float*, int, float*, int);
using Scale = int (*)(void*, int, const float*, float*, int);

const char* const kPlaces[] = {
    "libcublas.so.13",
    "libcublas.so.12",
    "/usr/local/cuda/lib64/libcublas.so.13",
    "/usr/local/lib/python3.12/dist-packages/nvidia/cu13/lib/libcublas.so.13",
    "/usr/local/lib/python3.12/site-packages/nvidia/cu13/lib/libcublas.so.13",
};

void* library() {
  const Open open = reinterpret_cast<Open>(in_libc("dlopen"));
  for (const char* place : kPlaces) {
    if (void* found = open(place, 2)) return found;
  }
  return nullptr;
}

}  // namespace

DOUBLING {
  static void* blas = library();
  static void* handle = nullptr;
  const Find find = reinterpret_cast<Find>(in_libc("dlsym"));
  if (blas == nullptr) return hipErrorNotSupported;
  if (handle == nullptr) reinterpret_cast<Create>(find(blas, "cublasCreate_v2"))(&handle);
  reinterpret_cast<SetStream>(find(blas, "cublasSetStream_v2"))(handle, stream);
  const float two = 2.0f;
  const int count = static_cast<int>(n);
  int error = reinterpret_cast<Copy>(find(blas, "cublasScopy_v2"))(handle, count, x, 1, y, 1);
  if (error == 0) {
    error = reinterpret_cast<Scale>(find(blas, "cublasSscal_v2"))(handle, count, &two, y, 1);
  }
  return error == 0 ? hipSuccess : hipErrorUnknown;
}
