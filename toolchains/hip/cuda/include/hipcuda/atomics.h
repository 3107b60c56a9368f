// Atomic operations of HIP that CUDA lacks.
#pragma once

#include <hipcuda/platform.h>

namespace hipcuda {

template <class T>
struct Identity {
  using type = T;
};
/// The parameter type of a value: the address alone decides T.
template <class T>
using Value = typename Identity<T>::type;

// Atomically replaces *address by update(*address); returns the old value.
template <class T, class Bits, class F>
HIPCUDA_DEVICE T atomic_update(T* address, F update) {
  static_assert(sizeof(T) == sizeof(Bits), "the bits of the value");
  Bits* bits = reinterpret_cast<Bits*>(address);
  Bits seen = *const_cast<volatile Bits*>(bits);
  for (;;) {
    T old;
    memcpy(&old, &seen, sizeof old);
    const T wanted = update(old);
    Bits next;
    memcpy(&next, &wanted, sizeof next);
    const Bits found = atomicCAS(bits, seen, next);
    if (found == seen) return old;
    seen = found;
  }
}

}  // namespace hipcuda

// A NaN never replaces a number, and a number always replaces a NaN.
#define HIPCUDA_ATOMIC_FLOAT(name, T, Bits, function)                                       \
  HIPCUDA_DEVICE T name(T* address, T value) {                                              \
    return hipcuda::atomic_update<T, Bits>(address,                                         \
                                           [=](T old) { return function(old, value); });    \
  }
HIPCUDA_ATOMIC_FLOAT(atomicMin, float, unsigned, fminf)
HIPCUDA_ATOMIC_FLOAT(atomicMax, float, unsigned, fmaxf)
HIPCUDA_ATOMIC_FLOAT(atomicMin, double, unsigned long long, fmin)
HIPCUDA_ATOMIC_FLOAT(atomicMax, double, unsigned long long, fmax)
#undef HIPCUDA_ATOMIC_FLOAT

// `unsigned long` and `unsigned long long` are different types of the same size here.
#define HIPCUDA_ATOMIC_LONG(name)                                                         \
  HIPCUDA_DEVICE unsigned long name(unsigned long* address, unsigned long value) {        \
    return name(reinterpret_cast<unsigned long long*>(address),                           \
                static_cast<unsigned long long>(value));                                  \
  }
HIPCUDA_ATOMIC_LONG(atomicAdd)
HIPCUDA_ATOMIC_LONG(atomicMin)
HIPCUDA_ATOMIC_LONG(atomicMax)
HIPCUDA_ATOMIC_LONG(atomicAnd)
HIPCUDA_ATOMIC_LONG(atomicOr)
HIPCUDA_ATOMIC_LONG(atomicXor)
HIPCUDA_ATOMIC_LONG(atomicExch)
#undef HIPCUDA_ATOMIC_LONG

HIPCUDA_DEVICE unsigned long long atomicSub(unsigned long long* address,
                                            unsigned long long value) {
  return atomicAdd(address, 0ull - value);
}
HIPCUDA_DEVICE float atomicSub(float* address, float value) { return atomicAdd(address, -value); }
HIPCUDA_DEVICE double atomicSub(double* address, double value) {
  return atomicAdd(address, -value);
}

template <class T>
HIPCUDA_DEVICE T unsafeAtomicAdd(T* address, hipcuda::Value<T> value) {
  return atomicAdd(address, value);
}
template <class T>
HIPCUDA_DEVICE T safeAtomicAdd(T* address, hipcuda::Value<T> value) {
  return atomicAdd(address, value);
}
template <class T>
HIPCUDA_DEVICE void atomicAddNoRet(T* address, hipcuda::Value<T> value) {
  atomicAdd(address, value);
}

// Scopes. A wave has its block's scope. CUDA needs literals, hence its own names here.
#define __HIP_MEMORY_SCOPE_SINGLETHREAD __NV_THREAD_SCOPE_THREAD
#define __HIP_MEMORY_SCOPE_WAVEFRONT __NV_THREAD_SCOPE_BLOCK
#define __HIP_MEMORY_SCOPE_WORKGROUP __NV_THREAD_SCOPE_BLOCK
#define __HIP_MEMORY_SCOPE_AGENT __NV_THREAD_SCOPE_DEVICE
#define __HIP_MEMORY_SCOPE_SYSTEM __NV_THREAD_SCOPE_SYSTEM

#define __hip_atomic_load(address, order, scope) \
  (__nv_atomic_load_n((address), (order), scope))
#define __hip_atomic_store(address, value, order, scope) \
  (__nv_atomic_store_n((address), (value), (order), scope))
#define __hip_atomic_exchange(address, value, order, scope) \
  (__nv_atomic_exchange_n((address), (value), (order), scope))
#define __hip_atomic_fetch_add(address, value, order, scope) \
  (__nv_atomic_fetch_add((address), (value), (order), scope))
#define __hip_atomic_fetch_min(address, value, order, scope) \
  (__nv_atomic_fetch_min((address), (value), (order), scope))
#define __hip_atomic_fetch_max(address, value, order, scope) \
  (__nv_atomic_fetch_max((address), (value), (order), scope))
