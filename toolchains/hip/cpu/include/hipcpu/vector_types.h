// float2, int4, dim3 and the rest, with the element-wise operators that HIP defines on them.
#pragma once

#include <hipcpu/platform.h>

namespace hipcpu {

template <class T, int N>
struct Vector;

template <class T>
struct Vector<T, 1> {
  T x;
  Vector() = default;
  template <class A>
  constexpr Vector(A a) : x(static_cast<T>(a)) {}
};

template <class T>
struct alignas(2 * sizeof(T)) Vector<T, 2> {
  T x, y;
  Vector() = default;
  constexpr Vector(T all) : x(all), y(all) {}
  template <class A, class B>
  constexpr Vector(A a, B b) : x(static_cast<T>(a)), y(static_cast<T>(b)) {}
};

template <class T>
struct Vector<T, 3> {
  T x, y, z;
  Vector() = default;
  constexpr Vector(T all) : x(all), y(all), z(all) {}
  template <class A, class B, class C>
  constexpr Vector(A a, B b, C c)
      : x(static_cast<T>(a)), y(static_cast<T>(b)), z(static_cast<T>(c)) {}
};

template <class T>
struct alignas(4 * sizeof(T)) Vector<T, 4> {
  T x, y, z, w;
  Vector() = default;
  constexpr Vector(T all) : x(all), y(all), z(all), w(all) {}
  template <class A, class B, class C, class D>
  constexpr Vector(A a, B b, C c, D d)
      : x(static_cast<T>(a)), y(static_cast<T>(b)), z(static_cast<T>(c)), w(static_cast<T>(d)) {}
};

// zip applies a function to the elements of two vectors, pair by pair.
template <class T, class F>
constexpr Vector<T, 1> zip(const Vector<T, 1>& a, const Vector<T, 1>& b, F f) {
  return {f(a.x, b.x)};
}
template <class T, class F>
constexpr Vector<T, 2> zip(const Vector<T, 2>& a, const Vector<T, 2>& b, F f) {
  return {f(a.x, b.x), f(a.y, b.y)};
}
template <class T, class F>
constexpr Vector<T, 3> zip(const Vector<T, 3>& a, const Vector<T, 3>& b, F f) {
  return {f(a.x, b.x), f(a.y, b.y), f(a.z, b.z)};
}
template <class T, class F>
constexpr Vector<T, 4> zip(const Vector<T, 4>& a, const Vector<T, 4>& b, F f) {
  return {f(a.x, b.x), f(a.y, b.y), f(a.z, b.z), f(a.w, b.w)};
}

template <class T>
constexpr bool equal(const Vector<T, 1>& a, const Vector<T, 1>& b) {
  return a.x == b.x;
}
template <class T>
constexpr bool equal(const Vector<T, 2>& a, const Vector<T, 2>& b) {
  return a.x == b.x && a.y == b.y;
}
template <class T>
constexpr bool equal(const Vector<T, 3>& a, const Vector<T, 3>& b) {
  return a.x == b.x && a.y == b.y && a.z == b.z;
}
template <class T>
constexpr bool equal(const Vector<T, 4>& a, const Vector<T, 4>& b) {
  return a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w;
}

template <class T>
struct Identity {
  using type = T;
};
// The parameter type of a scalar operand: the vector alone decides T.
template <class T>
using Scalar = typename Identity<T>::type;

#define HIPCPU_VECTOR_OPERATOR(op)                                                           \
  template <class T, int N>                                                                  \
  constexpr Vector<T, N> operator op(const Vector<T, N>& a, const Vector<T, N>& b) {         \
    return zip(a, b, [](T x, T y) { return static_cast<T>(x op y); });                       \
  }                                                                                          \
  template <class T, int N>                                                                  \
  constexpr Vector<T, N> operator op(const Vector<T, N>& a, Scalar<T> b) {                   \
    return a op Vector<T, N>(b);                                                             \
  }                                                                                          \
  template <class T, int N>                                                                  \
  constexpr Vector<T, N> operator op(Scalar<T> a, const Vector<T, N>& b) {                   \
    return Vector<T, N>(a) op b;                                                             \
  }                                                                                          \
  template <class T, int N>                                                                  \
  constexpr Vector<T, N>& operator op##=(Vector<T, N>& a, const Vector<T, N>& b) {           \
    return a = a op b;                                                                       \
  }                                                                                          \
  template <class T, int N>                                                                  \
  constexpr Vector<T, N>& operator op##=(Vector<T, N>& a, Scalar<T> b) {                     \
    return a = a op b;                                                                       \
  }
HIPCPU_VECTOR_OPERATOR(+)
HIPCPU_VECTOR_OPERATOR(-)
HIPCPU_VECTOR_OPERATOR(*)
HIPCPU_VECTOR_OPERATOR(/)
HIPCPU_VECTOR_OPERATOR(%)
HIPCPU_VECTOR_OPERATOR(&)
HIPCPU_VECTOR_OPERATOR(|)
HIPCPU_VECTOR_OPERATOR(^)
HIPCPU_VECTOR_OPERATOR(<<)
HIPCPU_VECTOR_OPERATOR(>>)
#undef HIPCPU_VECTOR_OPERATOR

template <class T, int N>
constexpr Vector<T, N> operator-(const Vector<T, N>& a) {
  return zip(a, a, [](T x, T) { return static_cast<T>(-x); });
}
template <class T, int N>
constexpr bool operator==(const Vector<T, N>& a, const Vector<T, N>& b) {
  return equal(a, b);
}
template <class T, int N>
constexpr bool operator!=(const Vector<T, N>& a, const Vector<T, N>& b) {
  return !equal(a, b);
}

}  // namespace hipcpu

#define HIPCPU_VECTOR_TYPE(T, name)                                                    \
  using name##1 = ::hipcpu::Vector<T, 1>;                                              \
  using name##2 = ::hipcpu::Vector<T, 2>;                                              \
  using name##3 = ::hipcpu::Vector<T, 3>;                                              \
  using name##4 = ::hipcpu::Vector<T, 4>;                                              \
  constexpr name##1 make_##name##1(T x) { return {x}; }                                \
  constexpr name##2 make_##name##2(T x, T y) { return {x, y}; }                        \
  constexpr name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                \
  constexpr name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
HIPCPU_VECTOR_TYPE(signed char, char)
HIPCPU_VECTOR_TYPE(unsigned char, uchar)
HIPCPU_VECTOR_TYPE(short, short)
HIPCPU_VECTOR_TYPE(unsigned short, ushort)
HIPCPU_VECTOR_TYPE(int, int)
HIPCPU_VECTOR_TYPE(unsigned int, uint)
HIPCPU_VECTOR_TYPE(long, long)
HIPCPU_VECTOR_TYPE(unsigned long, ulong)
HIPCPU_VECTOR_TYPE(long long, longlong)
HIPCPU_VECTOR_TYPE(unsigned long long, ulonglong)
HIPCPU_VECTOR_TYPE(float, float)
HIPCPU_VECTOR_TYPE(double, double)
#undef HIPCPU_VECTOR_TYPE

/// Extents of a grid or a block; each is 1 by default.
struct dim3 {
  uint32_t x, y, z;
  constexpr dim3(uint32_t x = 1, uint32_t y = 1, uint32_t z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(const uint3& v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};
