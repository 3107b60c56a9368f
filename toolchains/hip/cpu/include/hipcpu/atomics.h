// Atomic operations on global and shared memory, for every type of 1, 2, 4 or 8 bytes.
#pragma once

#include <hipcpu/vector_types.h>

namespace hipcpu {

// Atomically replaces *address by update(*address); returns the old value.
template <class T, class F>
HIPCPU_INLINE T atomic_update(T* address, F update) {
  T expected;
  __atomic_load(address, &expected, __ATOMIC_RELAXED);
  T desired = update(expected);
  while (!__atomic_compare_exchange(address, &expected, &desired, true, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
    desired = update(expected);
  }
  return expected;
}

}  // namespace hipcpu

// Each operation under its three names: the scope of all of them is the process.
#define HIPCPU_ATOMIC(name, expression)                                                   \
  template <class T>                                                                      \
  HIPCPU_INLINE T name(T* address, hipcpu::Scalar<T> value) {                             \
    return hipcpu::atomic_update(address,                                                 \
                                 [=](T old) { return static_cast<T>(expression); });      \
  }                                                                                       \
  template <class T>                                                                      \
  HIPCPU_INLINE T name##_block(T* address, hipcpu::Scalar<T> value) {                     \
    return name(address, value);                                                          \
  }                                                                                       \
  template <class T>                                                                      \
  HIPCPU_INLINE T name##_system(T* address, hipcpu::Scalar<T> value) {                    \
    return name(address, value);                                                          \
  }
HIPCPU_ATOMIC(atomicAdd, old + value)
HIPCPU_ATOMIC(atomicSub, old - value)
HIPCPU_ATOMIC(atomicMin, value < old ? value : old)
HIPCPU_ATOMIC(atomicMax, old < value ? value : old)
HIPCPU_ATOMIC(atomicAnd, old & value)
HIPCPU_ATOMIC(atomicOr, old | value)
HIPCPU_ATOMIC(atomicXor, old ^ value)
HIPCPU_ATOMIC(atomicExch, ((void)old, value))
HIPCPU_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
HIPCPU_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
#undef HIPCPU_ATOMIC

template <class T>
HIPCPU_INLINE T atomicCAS(T* address, hipcpu::Scalar<T> compare, hipcpu::Scalar<T> value) {
  T expected = compare;
  T desired = value;
  __atomic_compare_exchange(address, &expected, &desired, false, __ATOMIC_RELAXED,
                            __ATOMIC_RELAXED);
  return expected;
}
template <class T>
HIPCPU_INLINE T atomicCAS_block(T* address, hipcpu::Scalar<T> compare, hipcpu::Scalar<T> value) {
  return atomicCAS(address, compare, value);
}
template <class T>
HIPCPU_INLINE T atomicCAS_system(T* address, hipcpu::Scalar<T> compare, hipcpu::Scalar<T> value) {
  return atomicCAS(address, compare, value);
}

template <class T>
HIPCPU_INLINE T unsafeAtomicAdd(T* address, hipcpu::Scalar<T> value) {
  return atomicAdd(address, value);
}
template <class T>
HIPCPU_INLINE T safeAtomicAdd(T* address, hipcpu::Scalar<T> value) {
  return atomicAdd(address, value);
}
template <class T>
HIPCPU_INLINE void atomicAddNoRet(T* address, hipcpu::Scalar<T> value) {
  atomicAdd(address, value);
}

#ifndef __HIP_MEMORY_SCOPE_SINGLETHREAD
#define __HIP_MEMORY_SCOPE_SINGLETHREAD 1
#define __HIP_MEMORY_SCOPE_WAVEFRONT 2
#define __HIP_MEMORY_SCOPE_WORKGROUP 3
#define __HIP_MEMORY_SCOPE_AGENT 4
#define __HIP_MEMORY_SCOPE_SYSTEM 5
#endif
#define __hip_atomic_load(address, order, scope) __atomic_load_n(address, order)
#define __hip_atomic_store(address, value, order, scope) __atomic_store_n(address, value, order)
#define __hip_atomic_fetch_add(address, value, order, scope) atomicAdd(address, value)
#define __hip_atomic_fetch_min(address, value, order, scope) atomicMin(address, value)
#define __hip_atomic_fetch_max(address, value, order, scope) atomicMax(address, value)
#define __hip_atomic_exchange(address, value, order, scope) atomicExch(address, value)
