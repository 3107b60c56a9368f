// Arithmetic and comparisons of 128-bit numbers.
#include "number.h"

namespace {

constexpr Number kNan = {Kind::kNan, false, 0, static_cast<Wide>(1) << 127};

Number with_sign(Number number, bool negative) {
  number.negative = negative;
  return number;
}

// Both finite. Two bits of room above the sum; the lowest bit is sticky.
Number sum_of_finite(Number a, Number b) {
  if (a.exponent < b.exponent || (a.exponent == b.exponent && a.significand < b.significand)) {
    const Number other = a;
    a = b;
    b = other;
  }
  const Wide large = shifted_right(a.significand, 2);
  const Wide small = shifted_right(shifted_right(b.significand, 2), a.exponent - b.exponent);
  const Wide sum = a.negative == b.negative ? large + small : large - small;
  const Number found = normalised(a.negative, a.exponent + 2, sum);
  return sum == 0 ? with_sign(found, false) : found;
}

Number sum(const Number& a, const Number& b) {
  if (a.kind == Kind::kNan) return a;
  if (b.kind == Kind::kNan) return b;
  if (a.kind == Kind::kInfinite) {
    return b.kind == Kind::kInfinite && a.negative != b.negative ? kNan : a;
  }
  if (b.kind == Kind::kInfinite) return b;
  if (a.kind == Kind::kZero && b.kind == Kind::kZero) return with_sign(a, a.negative && b.negative);
  if (a.kind == Kind::kZero) return b;
  if (b.kind == Kind::kZero) return a;
  return sum_of_finite(a, b);
}

// The upper half of a product of 256 bits, sticky.
Wide upper_product(Wide a, Wide b) {
  const Wide mask = ~static_cast<uint64_t>(0);
  const Wide low = (a & mask) * (b & mask), high = (a >> 64) * (b >> 64);
  const Wide one = (a >> 64) * (b & mask), other = (a & mask) * (b >> 64);
  const Wide middle = (low >> 64) + (one & mask) + (other & mask);
  const Wide lower = (middle << 64) | (low & mask);
  return (high + (one >> 64) + (other >> 64) + (middle >> 64)) | (lower != 0);
}

Number product(const Number& a, const Number& b) {
  const bool negative = a.negative != b.negative;
  if (a.kind == Kind::kNan) return a;
  if (b.kind == Kind::kNan) return b;
  const bool infinite = a.kind == Kind::kInfinite || b.kind == Kind::kInfinite;
  const bool zero = a.kind == Kind::kZero || b.kind == Kind::kZero;
  if (infinite) return zero ? kNan : Number{Kind::kInfinite, negative, 0, 0};
  if (zero) return {Kind::kZero, negative, 0, 0};
  const Wide upper = upper_product(a.significand, b.significand);
  return normalised(negative, a.exponent + b.exponent + 1, upper);
}

Number quotient(const Number& a, const Number& b) {
  const bool negative = a.negative != b.negative;
  if (a.kind == Kind::kNan) return a;
  if (b.kind == Kind::kNan) return b;
  if (a.kind == b.kind && a.kind != Kind::kFinite) return kNan;
  if (a.kind == Kind::kInfinite || b.kind == Kind::kZero) {
    return {Kind::kInfinite, negative, 0, 0};
  }
  if (a.kind == Kind::kZero || b.kind == Kind::kInfinite) return {Kind::kZero, negative, 0, 0};
  Wide rest = a.significand >> 1, found = 0;  // the lowest bit of a quad's is always clear
  const Wide divisor = b.significand >> 1;
  for (int bit = 0; bit < 120; ++bit) {
    found <<= 1;
    if (rest >= divisor) {
      rest -= divisor;
      found |= 1;
    }
    rest <<= 1;
  }
  return normalised(negative, a.exponent - b.exponent + 8, found << 0 | (rest != 0));
}

// -1, 0 or 1; 2 if they are unordered.
int compared(QuadType x, QuadType y) {
  const Number a = Quad::unpack(x), b = Quad::unpack(y);
  if (a.kind == Kind::kNan || b.kind == Kind::kNan) return 2;
  if (a.kind == Kind::kZero && b.kind == Kind::kZero) return 0;
  const Signed p = static_cast<Signed>(Quad::bits_of(x)), q = static_cast<Signed>(Quad::bits_of(y));
  if (p == q) return 0;
  const bool less = p < 0 && q < 0 ? p > q : p < q;
  return less ? -1 : 1;
}

int or_else(int compared, int unordered) { return compared == 2 ? unordered : compared; }

QuadType negated(QuadType x) {
  const Number number = Quad::unpack(x);
  return Quad::pack(with_sign(number, !number.negative));
}

}  // namespace

extern "C" {
QuadType __addtf3(QuadType x, QuadType y) {
  return Quad::pack(sum(Quad::unpack(x), Quad::unpack(y)));
}
QuadType __subtf3(QuadType x, QuadType y) { return __addtf3(x, negated(y)); }
QuadType __multf3(QuadType x, QuadType y) {
  return Quad::pack(product(Quad::unpack(x), Quad::unpack(y)));
}
QuadType __divtf3(QuadType x, QuadType y) {
  return Quad::pack(quotient(Quad::unpack(x), Quad::unpack(y)));
}
int __unordtf2(QuadType x, QuadType y) { return compared(x, y) == 2; }
int __eqtf2(QuadType x, QuadType y) { return or_else(compared(x, y), 1); }
int __netf2(QuadType x, QuadType y) { return or_else(compared(x, y), 1); }
int __lttf2(QuadType x, QuadType y) { return or_else(compared(x, y), 1); }
int __letf2(QuadType x, QuadType y) { return or_else(compared(x, y), 1); }
int __gttf2(QuadType x, QuadType y) { return or_else(compared(x, y), -1); }
int __getf2(QuadType x, QuadType y) { return or_else(compared(x, y), -1); }
}
