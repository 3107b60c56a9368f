// Modules and libraries: who owns their code, and the handles of their kernels.
#include "../launch_filter/filter.h"
#include "functions.h"

WRAP(cuModuleLoad)(Home* module, const char* file) {
  const Result result = REAL(cuModuleLoad, module, file);
  if (result == kSuccess) loaded(*module, nullptr);
  return result;
}

WRAP(cuModuleLoadData)(Home* module, const void* image) {
  const Result result = REAL(cuModuleLoadData, module, image);
  if (result == kSuccess) loaded(*module, image);
  return result;
}

WRAP(cuModuleLoadDataEx)
(Home* module, const void* image, Unsigned count, void* options, void** values) {
  const Result result = REAL(cuModuleLoadDataEx, module, image, count, options, values);
  if (result == kSuccess) loaded(*module, image);
  return result;
}

WRAP(cuModuleLoadFatBinary)(Home* module, const void* image) {
  const Result result = REAL(cuModuleLoadFatBinary, module, image);
  if (result == kSuccess) loaded(*module, image);
  return result;
}

WRAP(cuModuleUnload)(Home module) {
  forget(module);
  return REAL(cuModuleUnload, module);
}

WRAP(cuModuleGetFunction)(Function* function, Home module, const char* name) {
  const Result result = REAL(cuModuleGetFunction, function, module, name);
  if (result == kSuccess) given(*function, module);
  return result;
}

WRAP(cuModuleEnumerateFunctions)(Function* functions, Unsigned count, Home module) {
  const Result result = REAL(cuModuleEnumerateFunctions, functions, count, module);
  for (Unsigned i = 0; result == kSuccess && i < count; ++i) given(functions[i], module);
  return result;
}

WRAP(cuLibraryLoadData)(Home* library, const void* image, LIBRARY_OPTIONS) {
  const Result result = REAL(cuLibraryLoadData, library, image, LIBRARY_OPTIONS_OF);
  if (result == kSuccess) loaded(*library, image);
  return result;
}

WRAP(cuLibraryLoadFromFile)(Home* library, const char* file, LIBRARY_OPTIONS) {
  const Result result = REAL(cuLibraryLoadFromFile, library, file, LIBRARY_OPTIONS_OF);
  if (result == kSuccess) loaded(*library, nullptr);
  return result;
}

WRAP(cuLibraryUnload)(Home library) {
  forget(library);
  return REAL(cuLibraryUnload, library);
}

WRAP(cuLibraryGetKernel)(Function* kernel, Home library, const char* name) {
  const Result result = REAL(cuLibraryGetKernel, kernel, library, name);
  if (result == kSuccess) given(*kernel, library);
  return result;
}

WRAP(cuLibraryEnumerateKernels)(Function* kernels, Unsigned count, Home library) {
  const Result result = REAL(cuLibraryEnumerateKernels, kernels, count, library);
  for (Unsigned i = 0; result == kSuccess && i < count; ++i) given(kernels[i], library);
  return result;
}

WRAP(cuLibraryGetModule)(Home* module, Home library) {
  const Result result = REAL(cuLibraryGetModule, module, library);
  if (result == kSuccess) given(*module, library);
  return result;
}

WRAP(cuKernelGetFunction)(Function* function, Function kernel) {
  const Result result = REAL(cuKernelGetFunction, function, kernel);
  if (result == kSuccess) given(*function, kernel);
  return result;
}
