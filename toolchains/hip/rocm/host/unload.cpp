// Stands in for a compiler's start-up code: clang unregisters the bundle by `atexit`, which must
// also happen if the library is unloaded before the process ends.
extern "C" {

__attribute__((visibility("hidden"))) void* __dso_handle = &__dso_handle;

int __cxa_atexit(void (*function)(void*), void* argument, void* library);
void __cxa_finalize(void* library);

__attribute__((visibility("hidden"))) int atexit(void (*function)()) {
  return __cxa_atexit(reinterpret_cast<void (*)(void*)>(function), nullptr, &__dso_handle);
}

__attribute__((destructor, visibility("hidden"))) void unload_library() {
  __cxa_finalize(&__dso_handle);
}

}  // extern "C"
