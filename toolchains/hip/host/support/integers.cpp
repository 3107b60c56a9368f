// Division of 128-bit integers.
#include "number.h"

namespace {

struct Divided {
  Wide quotient;
  Wide rest;
};

Divided divided_by_half(Wide value, uint64_t divisor) {
  Wide quotient = 0;
  uint64_t rest = 0;
  for (int digit = 3; digit >= 0; --digit) {  // of 32 bits, so that no step needs more than 64
    const uint64_t step = rest << 32 | static_cast<uint32_t>(value >> (32 * digit));
    quotient = quotient << 32 | step / divisor;
    rest = step % divisor;
  }
  return {quotient, rest};
}

Divided divide(Wide value, Wide divisor) {
  const uint64_t low = static_cast<uint64_t>(divisor);
  if (divisor >> 32 == 0) return divided_by_half(value, low);
  if (value >> 64 == 0 && divisor >> 64 == 0) {
    const uint64_t small = static_cast<uint64_t>(value);
    return {small / low, small % low};
  }
  Wide quotient = 0;
  if (value < divisor) return {0, value};
  for (int shift = leading_zeros(divisor) - leading_zeros(value); shift >= 0; --shift) {
    const Wide part = divisor << shift;
    quotient <<= 1;
    if (value >= part) {
      value -= part;
      quotient |= 1;
    }
  }
  return {quotient, value};
}

Wide magnitude(Signed value) {
  return value < 0 ? -static_cast<Wide>(value) : static_cast<Wide>(value);
}

Signed with_sign(bool negative, Wide value) {
  return static_cast<Signed>(negative ? -value : value);
}

}  // namespace

extern "C" {
Wide __udivti3(Wide a, Wide b) { return divide(a, b).quotient; }
Wide __umodti3(Wide a, Wide b) { return divide(a, b).rest; }
Wide __udivmodti4(Wide a, Wide b, Wide* rest) {
  const Divided both = divide(a, b);
  if (rest != nullptr) *rest = both.rest;
  return both.quotient;
}
Signed __divti3(Signed a, Signed b) {
  return with_sign((a < 0) != (b < 0), divide(magnitude(a), magnitude(b)).quotient);
}
Signed __modti3(Signed a, Signed b) {
  return with_sign(a < 0, divide(magnitude(a), magnitude(b)).rest);
}
Signed __divmodti4(Signed a, Signed b, Signed* rest) {
  *rest = __modti3(a, b);
  return __divti3(a, b);
}
}
