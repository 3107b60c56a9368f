// Operators between a 16-bit number and another type. CUDA has them for two 16-bit numbers only;
// all others are ambiguous there. As in HIP on other platforms, a float or double wins, and an
// integer becomes a 16-bit number.
#pragma once

#include <hipcuda/platform.h>

namespace hipcuda {

template <class T, class Small>
struct Mixed {};
template <class Small>
struct Mixed<float, Small> {
  using type = float;
};
template <class Small>
struct Mixed<double, Small> {
  using type = double;
};
#define HIPCUDA_INTEGER(T)       \
  template <class Small>         \
  struct Mixed<T, Small> {       \
    using type = Small;          \
  };
HIPCUDA_INTEGER(short)
HIPCUDA_INTEGER(unsigned short)
HIPCUDA_INTEGER(int)
HIPCUDA_INTEGER(unsigned)
HIPCUDA_INTEGER(long)
HIPCUDA_INTEGER(unsigned long)
HIPCUDA_INTEGER(long long)
HIPCUDA_INTEGER(unsigned long long)
#undef HIPCUDA_INTEGER

template <class A, class B>
constexpr bool kSame = false;
template <class A>
constexpr bool kSame<A, A> = true;

template <class To, class From>
HIPCUDA_ANYWHERE To convert(From value) {
  if constexpr (kSame<To, From>) {
    return value;
  } else {
    return static_cast<To>(static_cast<float>(value));
  }
}

}  // namespace hipcuda

#define HIPCUDA_MIXED(Small, op, result)                                        \
  template <class T, class R = typename hipcuda::Mixed<T, Small>::type>         \
  HIPCUDA_ANYWHERE result operator op(Small a, T b) {                           \
    return hipcuda::convert<R>(a) op hipcuda::convert<R>(b);                    \
  }                                                                             \
  template <class T, class R = typename hipcuda::Mixed<T, Small>::type>         \
  HIPCUDA_ANYWHERE result operator op(T a, Small b) {                           \
    return hipcuda::convert<R>(a) op hipcuda::convert<R>(b);                    \
  }
#define HIPCUDA_MIXED_OPERATORS(Small) \
  HIPCUDA_MIXED(Small, +, R)           \
  HIPCUDA_MIXED(Small, -, R)           \
  HIPCUDA_MIXED(Small, *, R)           \
  HIPCUDA_MIXED(Small, /, R)           \
  HIPCUDA_MIXED(Small, ==, bool)       \
  HIPCUDA_MIXED(Small, !=, bool)       \
  HIPCUDA_MIXED(Small, <, bool)        \
  HIPCUDA_MIXED(Small, <=, bool)       \
  HIPCUDA_MIXED(Small, >, bool)        \
  HIPCUDA_MIXED(Small, >=, bool)
