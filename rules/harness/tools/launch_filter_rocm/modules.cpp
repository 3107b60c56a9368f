// Modules, libraries and registered fat binaries: their kernels, and who owns the code.
#include "../launch_filter/filter.h"
#include "../launch_filter/images.h"
#include "functions.h"

namespace {

// Records a kernel of `home` by its name, from any owner.
void found(Function kernel, Home home, const char* name) {
  const Owner owner = owner_of(home);
  own(kernel, home, owner == kUnknown ? kForeign : owner);
  note_name(kernel, name);
}

// Records the address of a library's kernel. Libraries have tens of thousands, so it records only
// the candidate's, and those that would otherwise pass for PyTorch's or the candidate's.
void registered(const void* host, Home binary) {
  if (!filtering()) return;
  const Owner owner = owner_of(binary);
  const Owner before = owner_of(host);
  if (before == kUnknown && owner == kCandidate) {
    own(host, binary, kCandidate);
  } else if ((before != kUnknown && before != owner) || in_pytorch(host)) {
    own(host, binary, kForeign);
  }
}

}  // namespace

WRAP_AS(Home, __hipRegisterFatBinary)(const void* wrapper) {
  const auto real = REAL_FUNCTION(__hipRegisterFatBinary);
  const Home binary = real == nullptr ? nullptr : real(wrapper);
  if (binary != nullptr && filtering()) loaded(binary, wrapper);
  return binary;
}

WRAP_AS(void, __hipUnregisterFatBinary)(Home binary) {
  if (filtering()) forget(binary);
  const auto real = REAL_FUNCTION(__hipUnregisterFatBinary);
  if (real != nullptr) real(binary);
}

WRAP_AS(void, __hipRegisterFunction)
(Home binary, const void* host, char* device, const char* name, Unsigned limit, void* thread,
 void* block, void* blocks, void* grids, int* wave) {
  const auto real = REAL_FUNCTION(__hipRegisterFunction);
  if (real == nullptr) return;
  real(binary, host, device, name, limit, thread, block, blocks, grids, wave);
  registered(host, binary);
}

WRAP(hipModuleLoad)(Home* module, const char* file) {
  const Result result = REAL(hipModuleLoad, module, file);
  if (result == kSuccess) loaded(*module, nullptr);
  return result;
}

WRAP(hipModuleLoadData)(Home* module, const void* image) {
  const Result result = REAL(hipModuleLoadData, module, image);
  if (result == kSuccess) loaded(*module, image);
  return result;
}

WRAP(hipModuleLoadDataEx)
(Home* module, const void* image, Unsigned count, void* options, void** values) {
  const Result result = REAL(hipModuleLoadDataEx, module, image, count, options, values);
  if (result == kSuccess) loaded(*module, image);
  return result;
}

WRAP(hipModuleLoadFatBinary)(Home* module, const void* image) {
  const Result result = REAL(hipModuleLoadFatBinary, module, image);
  if (result == kSuccess) loaded(*module, image);
  return result;
}

WRAP(hipModuleUnload)(Home module) {
  forget(module);
  return REAL(hipModuleUnload, module);
}

WRAP(hipModuleGetFunction)(Function* function, Home module, const char* name) {
  const Result result = REAL(hipModuleGetFunction, function, module, name);
  if (result == kSuccess) found(*function, module, name);
  return result;
}

WRAP(hipLibraryLoadData)(Home* library, const void* image, LIBRARY_OPTIONS) {
  const Result result = REAL(hipLibraryLoadData, library, image, LIBRARY_OPTIONS_OF);
  if (result == kSuccess) loaded(*library, image);
  return result;
}

WRAP(hipLibraryLoadFromFile)(Home* library, const char* file, LIBRARY_OPTIONS) {
  const Result result = REAL(hipLibraryLoadFromFile, library, file, LIBRARY_OPTIONS_OF);
  if (result == kSuccess) loaded(*library, nullptr);
  return result;
}

WRAP(hipLibraryUnload)(Home library) {
  forget(library);
  return REAL(hipLibraryUnload, library);
}

WRAP(hipLibraryGetKernel)(Function* kernel, Home library, const char* name) {
  const Result result = REAL(hipLibraryGetKernel, kernel, library, name);
  if (result == kSuccess) found(*kernel, library, name);
  return result;
}

WRAP(hipLibraryEnumerateKernels)(Function* kernels, Unsigned count, Home library) {
  const Result result = REAL(hipLibraryEnumerateKernels, kernels, count, library);
  for (Unsigned i = 0; result == kSuccess && i < count; ++i) found(kernels[i], library, nullptr);
  return result;
}

WRAP(hipKernelGetFunction)(Function* function, Function kernel) {
  const Result result = REAL(hipKernelGetFunction, function, kernel);
  if (result == kSuccess) given(*function, kernel);
  return result;
}

WRAP(hipGetFuncBySymbol)(Function* function, const void* symbol) {
  const Result result = REAL(hipGetFuncBySymbol, function, symbol);
  if (result == kSuccess) given(*function, symbol);
  return result;
}
