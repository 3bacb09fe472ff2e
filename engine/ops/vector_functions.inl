// exp and what follows from it, on vectors of single precision: within a few units in the last place of
// what the C library gives, one number at a time. Double precision stays with the C library.

// The vector of 32-bit integers that goes with a vector of floats.
template <class V>
struct IntegersOf {
  using Type [[gnu::vector_size(sizeof(V)), gnu::aligned(4)]] = int;
};

// exp(x) as 2^n * exp(r) with |r| <= ln 2 / 2: a Taylor polynomial of degree 7 in r is exact to
// rounding. x is held inside what a float can express.
template <class V>
[[gnu::always_inline]] inline V exp_of(V x) {
  using Integers = typename IntegersOf<V>::Type;
  constexpr float kLog2e = 1.44269504F;
  constexpr float kLn2High = 0.693359375F;  // few bits: its multiples are exact
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to a whole number
  const V least = V{} - 87.0F;
  const V most = V{} + 88.0F;
  x = x < least ? least : x;
  x = x > most ? most : x;
  const V shifted = x * kLog2e + kRound;
  const V n = shifted - kRound;
  const V r = (x - n * kLn2High) - n * kLn2Low;
  V p = r * (1.0F / 5040) + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r * r + r + 1.0F;
  const Integers power = __builtin_convertvector(n, Integers);
  const Integers scale = (power + 127) << 23;
  return p * reinterpret_cast<V>(scale);
}

template <class V>
[[gnu::always_inline]] inline V logistic_of(const V& x) {
  return 1.0F / (1.0F + exp_of(V(-x)));
}

// Near 0 by its Taylor series, elsewhere by exp.
template <class V>
[[gnu::always_inline]] inline V tanh_of(const V& x) {
  const V size = x < 0.0F ? -x : x;
  const V square = x * x;
  V series = square * (-1382.0F / 155925) + 62.0F / 2835;
  series = series * square - 17.0F / 315;
  series = series * square + 2.0F / 15;
  series = series * square - 1.0F / 3;
  series = series * square * x + x;
  const V far = 1.0F - 2.0F / (exp_of(V(size + size)) + 1.0F);
  return size < 0.25F ? series : (x < 0.0F ? -far : far);
}
