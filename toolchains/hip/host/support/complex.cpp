// Products and quotients of complex numbers (C99, annex G), and powers with integer exponents.
namespace {

template <class Real>
bool is_nan(Real x) { return __builtin_isnan(x); }
template <class Real>
bool is_infinite(Real x) { return __builtin_isinf(x); }
template <class Real>
Real sign_of(Real x) { return __builtin_signbit(x) ? Real(-1) : Real(1); }
// 1 for an infinity and 0 for any other number, with its sign.
template <class Real>
Real boxed(Real x) { return (is_infinite(x) ? Real(1) : Real(0)) * sign_of(x); }
template <class Real>
Real without_nan(Real x) { return is_nan(x) ? Real(0) * sign_of(x) : x; }

template <class Real, class Complex>
Complex complex(Real re, Real im) {
  Complex z;
  __real__ z = re;
  __imag__ z = im;
  return z;
}

template <class Real, class Complex>
Complex product(Real a, Real b, Real c, Real d) {
  const Real ac = a * c, bd = b * d, ad = a * d, bc = b * c;
  Real re = ac - bd, im = ad + bc;
  if (!is_nan(re) || !is_nan(im)) return complex<Real, Complex>(re, im);
  bool again = false;
  if (is_infinite(a) || is_infinite(b)) {
    a = boxed(a), b = boxed(b), c = without_nan(c), d = without_nan(d);
    again = true;
  }
  if (is_infinite(c) || is_infinite(d)) {
    c = boxed(c), d = boxed(d), a = without_nan(a), b = without_nan(b);
    again = true;
  }
  if (!again && (is_infinite(ac) || is_infinite(bd) || is_infinite(ad) || is_infinite(bc))) {
    a = without_nan(a), b = without_nan(b), c = without_nan(c), d = without_nan(d);
    again = true;
  }
  if (!again) return complex<Real, Complex>(re, im);
  const Real infinity = Real(__builtin_inf());
  return complex<Real, Complex>(infinity * (a * c - b * d), infinity * (a * d + b * c));
}

// Scaled by a power of two, so that the square of the divisor neither overflows nor vanishes.
template <class Real, class Complex>
Complex quotient(Real a, Real b, Real c, Real d) {
  const Real size = __builtin_fabsl(c) > __builtin_fabsl(d) ? c : d;
  Real scale = 1;
  if (size != 0 && !is_nan(size) && !is_infinite(size)) {
    Real whole = size < 0 ? -size : size;
    while (whole >= 2) whole /= 2, scale /= 2;
    while (whole < 1) whole *= 2, scale *= 2;
  }
  const Real p = c * scale, q = d * scale, square = p * p + q * q;
  const Real re = (a * p + b * q) / square * scale, im = (b * p - a * q) / square * scale;
  if (!is_nan(re) || !is_nan(im)) return complex<Real, Complex>(re, im);
  const Real infinity = Real(__builtin_inf());
  if (square == 0 && (!is_nan(a) || !is_nan(b))) {
    const Real signed_infinity = infinity * sign_of(c);
    return complex<Real, Complex>(signed_infinity * a, signed_infinity * b);
  }
  const bool finite = !is_infinite(c) && !is_infinite(d) && !is_nan(c) && !is_nan(d);
  if ((is_infinite(a) || is_infinite(b)) && finite) {
    a = boxed(a), b = boxed(b);
    return complex<Real, Complex>(infinity * (a * c + b * d), infinity * (b * c - a * d));
  }
  const bool known = !is_infinite(a) && !is_infinite(b) && !is_nan(a) && !is_nan(b);
  if ((is_infinite(c) || is_infinite(d)) && known) {
    c = boxed(c), d = boxed(d);
    return complex<Real, Complex>(Real(0) * (a * c + b * d), Real(0) * (b * c - a * d));
  }
  return complex<Real, Complex>(re, im);
}

template <class Real>
Real power(Real x, int n) {
  Real found = 1;
  for (unsigned left = n < 0 ? 0u - static_cast<unsigned>(n) : n; left != 0; left /= 2, x *= x) {
    if (left & 1) found *= x;
  }
  return n < 0 ? 1 / found : found;
}

}  // namespace

#define ARITHMETIC(letter, Real)                                              \
  extern "C" {                                                                \
  _Complex Real __mul##letter##c3(Real a, Real b, Real c, Real d) {           \
    return product<Real, _Complex Real>(a, b, c, d);                          \
  }                                                                           \
  _Complex Real __div##letter##c3(Real a, Real b, Real c, Real d) {           \
    return quotient<Real, _Complex Real>(a, b, c, d);                         \
  }                                                                           \
  Real __powi##letter##f2(Real x, int n) { return power<Real>(x, n); }        \
  }

ARITHMETIC(s, float)
ARITHMETIC(d, double)
#if defined(__x86_64__)
ARITHMETIC(x, long double)
#else
ARITHMETIC(t, long double)
#endif
