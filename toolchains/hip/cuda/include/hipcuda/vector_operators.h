// The element-wise operators on float2, int4 and the like, which HIP has and CUDA lacks.
#pragma once

#include <hipcuda/platform.h>

// The elements of a vector: x alone, x and y, and so on.
#define HIPCUDA_ELEMENTS1(apply) apply(x)
#define HIPCUDA_ELEMENTS2(apply) apply(x), apply(y)
#define HIPCUDA_ELEMENTS3(apply) apply(x), apply(y), apply(z)
#define HIPCUDA_ELEMENTS4(apply) apply(x), apply(y), apply(z), apply(w)
#define HIPCUDA_ALL1(apply) apply(x)
#define HIPCUDA_ALL2(apply) apply(x) && apply(y)
#define HIPCUDA_ALL3(apply) apply(x) && apply(y) && apply(z)
#define HIPCUDA_ALL4(apply) apply(x) && apply(y) && apply(z) && apply(w)

namespace hipcuda {

/// Element type and length of a vector type; nothing for all others.
template <class V>
struct VectorOf {};

template <class T>
struct Plain {
  using type = T;
};

}  // namespace hipcuda

#define HIPCUDA_VECTOR(V, T, n)                                               \
  template <>                                                                 \
  struct hipcuda::VectorOf<V> {                                               \
    using element = T;                                                        \
    template <class F>                                                        \
    static __host__ __device__ __forceinline__ V zip(const V& a, const V& b, F f) { \
      return {HIPCUDA_ELEMENTS##n(HIPCUDA_ZIP)};                              \
    }                                                                         \
    static __host__ __device__ __forceinline__ bool equal(const V& a, const V& b) { \
      return HIPCUDA_ALL##n(HIPCUDA_EQUAL);                                   \
    }                                                                         \
    static __host__ __device__ __forceinline__ V splat(T all) {               \
      return {HIPCUDA_ELEMENTS##n(HIPCUDA_SPLAT)};                            \
    }                                                                         \
  };
#define HIPCUDA_ZIP(e) static_cast<decltype(a.e)>(f(a.e, b.e))
#define HIPCUDA_EQUAL(e) a.e == b.e
#define HIPCUDA_SPLAT(e) all
#define HIPCUDA_VECTORS(name, T)  \
  HIPCUDA_VECTOR(name##1, T, 1)   \
  HIPCUDA_VECTOR(name##2, T, 2)   \
  HIPCUDA_VECTOR(name##3, T, 3)   \
  HIPCUDA_VECTOR(name##4, T, 4)
HIPCUDA_VECTORS(char, signed char)
HIPCUDA_VECTORS(uchar, unsigned char)
HIPCUDA_VECTORS(short, short)
HIPCUDA_VECTORS(ushort, unsigned short)
HIPCUDA_VECTORS(int, int)
HIPCUDA_VECTORS(uint, unsigned)
HIPCUDA_VECTORS(long, long)
HIPCUDA_VECTORS(ulong, unsigned long)
HIPCUDA_VECTORS(longlong, long long)
HIPCUDA_VECTORS(ulonglong, unsigned long long)
HIPCUDA_VECTORS(float, float)
HIPCUDA_VECTOR(double1, double, 1)
HIPCUDA_VECTOR(double2, double, 2)
HIPCUDA_VECTOR(double3, double, 3)
#undef HIPCUDA_VECTORS
#undef HIPCUDA_VECTOR
#undef HIPCUDA_SPLAT
#undef HIPCUDA_EQUAL
#undef HIPCUDA_ZIP

#define HIPCUDA_OPERATOR_TEMPLATE(result) \
  template <class V, class T = typename hipcuda::VectorOf<V>::element> \
  HIPCUDA_ANYWHERE result
#define HIPCUDA_OPERATOR(op)                                                              \
  HIPCUDA_OPERATOR_TEMPLATE(V) operator op(const V& a, const V& b) {                      \
    return hipcuda::VectorOf<V>::zip(a, b, [](T x, T y) { return x op y; });              \
  }                                                                                       \
  HIPCUDA_OPERATOR_TEMPLATE(V)                                                            \
  operator op(const V& a, typename hipcuda::Plain<T>::type b) {                           \
    return a op hipcuda::VectorOf<V>::splat(b);                                           \
  }                                                                                       \
  HIPCUDA_OPERATOR_TEMPLATE(V)                                                            \
  operator op(typename hipcuda::Plain<T>::type a, const V& b) {                           \
    return hipcuda::VectorOf<V>::splat(a) op b;                                           \
  }                                                                                       \
  HIPCUDA_OPERATOR_TEMPLATE(V&) operator op##=(V& a, const V& b) { return a = a op b; }   \
  HIPCUDA_OPERATOR_TEMPLATE(V&) operator op##=(V& a, typename hipcuda::Plain<T>::type b) { \
    return a = a op b;                                                                    \
  }
HIPCUDA_OPERATOR(+)
HIPCUDA_OPERATOR(-)
HIPCUDA_OPERATOR(*)
HIPCUDA_OPERATOR(/)
HIPCUDA_OPERATOR(%)
HIPCUDA_OPERATOR(&)
HIPCUDA_OPERATOR(|)
HIPCUDA_OPERATOR(^)
HIPCUDA_OPERATOR(<<)
HIPCUDA_OPERATOR(>>)
HIPCUDA_OPERATOR_TEMPLATE(V) operator-(const V& a) {
  return hipcuda::VectorOf<V>::zip(a, a, [](T x, T) { return -x; });
}
HIPCUDA_OPERATOR_TEMPLATE(bool) operator==(const V& a, const V& b) {
  return hipcuda::VectorOf<V>::equal(a, b);
}
HIPCUDA_OPERATOR_TEMPLATE(bool) operator!=(const V& a, const V& b) {
  return !hipcuda::VectorOf<V>::equal(a, b);
}
#undef HIPCUDA_OPERATOR
#undef HIPCUDA_OPERATOR_TEMPLATE
