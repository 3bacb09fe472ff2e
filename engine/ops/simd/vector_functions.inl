// exp and what follows from it, on vectors of single precision: within a few units in the last
// place of what the C library gives, one number at a time. Double precision stays with the C
// library.

// The vector of 32-bit integers that goes with a vector of floats.
template <class V>
struct IntegersOf {
  using Type [[gnu::vector_size(sizeof(V)), gnu::aligned(4)]] = int;
};

// exp(x) as (1 + rest) * scale, a power of two.
template <class V>
struct ReducedExp {
  V rest;
  V scale;
};

// x = n * ln 2 + r, |r| <= ln 2 / 2: the polynomial of degree 6 in r whose largest error, relative
// to exp(r) - 1, is least, 1.4e-8, so that small x, where the scale is 1, have all their digits. Of
// x whose power a float can express.
template <class V>
[[gnu::always_inline]] inline ReducedExp<V> reduced_exp(const V& x) {
  using Integers = typename IntegersOf<V>::Type;
  constexpr float kLog2e = 1.44269504F;
  constexpr float kLn2High = 0.693359375F;  // few bits: its multiples are exact
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kRound = 12583039.0F;  // 1.5 * 2^23 + 127: adding it rounds to an integer
  const V shifted = x * kLog2e + kRound;
  const V n = shifted - kRound;
  const V r = (x - n * kLn2High) - n * kLn2Low;
  V p = r * 1.38825163e-3F + 8.36654714e-3F;
  p = p * r + 4.16672007e-2F;
  p = p * r + 1.66665434e-1F;
  p = p * r + 0.499999981F;
  // The last bits of `shifted` are those of n + 127, the exponent of 2^n.
  const Integers scale = reinterpret_cast<Integers>(shifted) << 23;
  return {p * (r * r) + r, reinterpret_cast<V>(scale)};
}

// x is held inside what a float can express.
template <class V>
[[gnu::always_inline]] inline V exp_of(const V& x) {
  const V least = V{} - 87.0F;
  const V most = V{} + 88.0F;
  const V not_less = x < least ? least : x;
  const ReducedExp<V> exp = reduced_exp(V(not_less > most ? most : not_less));
  return (exp.rest + 1.0F) * exp.scale;
}

template <class V>
[[gnu::always_inline]] inline V logistic_of(const V& x) {
  return 1.0F / (1.0F + exp_of(V(-x)));
}

// tanh(log(1 + exp(x))) is n / (n + 2) with n = e * (e + 2), e = exp(x): nothing cancels. From about
// 20 on it is 1.
template <class V>
struct MishParts {
  V exp;
  V n;

  [[gnu::always_inline]] explicit MishParts(const V& x) {
    const V most = V{} + 20.0F;
    exp = exp_of(V(x > most ? most : x));
    n = exp * (exp + 2.0F);
  }
};

template <class V>
[[gnu::always_inline]] inline V mish_of(const V& x) {
  const MishParts<V> parts(x);
  return x * (parts.n / (parts.n + 2.0F));
}

// gelu's x / 2 * (1 + tanh(u)) is x * logistic(2 u), and 2 u this times x^3 and that times x.
constexpr float kGeluCubed = 0.071354F;
constexpr float kGeluTwice = 1.59577F;

template <class V>
[[gnu::always_inline]] inline V gelu_share_of(const V& x) {
  return logistic_of(V(x * (x * x * kGeluCubed + kGeluTwice)));
}

// tanh + x * logistic * (1 - tanh^2), whose last factor is 4 (e + 1)^2 / (n + 2)^2.
template <class V>
[[gnu::always_inline]] inline V mish_slope_of(const V& x) {
  const MishParts<V> parts(x);
  const V share = 1.0F / (parts.n + 2.0F);
  return parts.n * share + x * (4.0F * parts.exp * (parts.exp + 1.0F)) * share * share;
}

// t / (t + 2) with t = exp(2 |x|) - 1, and the sign of x.
template <class V>
[[gnu::always_inline]] inline V tanh_of(const V& x) {
  using Integers = typename IntegersOf<V>::Type;
  constexpr int kSign = -2147483647 - 1;
  const auto bits = reinterpret_cast<Integers>(x);
  V size = reinterpret_cast<V>(bits & ~kSign);
  const V most = V{} + 10.0F;  // from about 9 on it rounds to 1
  size = size > most ? most : size;
  const ReducedExp<V> exp = reduced_exp(V(size + size));
  const V less_one = exp.rest * exp.scale + (exp.scale - 1.0F);
  const V result = less_one / (less_one + 2.0F);
  return reinterpret_cast<V>(reinterpret_cast<Integers>(result) | (bits & kSign));
}
