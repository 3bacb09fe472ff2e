// Sums in single precision for 64-bit ARM processors that start instructions in the order of the
// program, two at a time at best: the order in this file is theirs. On a Cortex-A53 a multiply-add
// of a vector leaves room for one instruction of the integer unit beside it, a load included; a
// load of a vector keeps multiply-adds waiting, 2 cycles for 128 bits, 1 for 64, which a move of 64
// bits from an integer register to a vector may share (bench/pi/README.md has the sources). So
// weights come half by a load of 64 bits and half through integer registers, pixels through integer
// registers, two at a time; all for the next term while the present one is multiplied.
//
// Each statement is one instruction: compilers keep volatile ones in order, and allot registers.
// What is computed, and in which order terms are added up, is what block_kernels.inl does.

using FourFloats = VectorPart<float>;
using Bits32 [[gnu::may_alias]] = unsigned;
using Bits64 [[gnu::may_alias]] = unsigned long;

// sum += weights * pixels[kLane], in one rounding.
template <int kLane>
[[gnu::always_inline]] inline void multiply_add(FourFloats& sum,
                                                const FourFloats& weights,
                                                const FourFloats& pixels) {
  asm volatile("fmla %0.4s, %1.4s, %2.s[%c3]" : "+w"(sum) : "w"(weights), "w"(pixels), "i"(kLane));
}

// Two numbers, and 0 beyond them.
[[gnu::always_inline]] inline FourFloats low_half(const float* from) {
  FourFloats to;  // NOLINT(cppcoreguidelines-pro-type-member-init): the instruction assigns it
  asm volatile("ldr %d0, %1" : "=w"(to) : "m"(*reinterpret_cast<const Bits64*>(from)));
  return to;
}

[[gnu::always_inline]] inline FourFloats low_half(Bits64 bits) {
  FourFloats to;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  asm volatile("fmov %d0, %1" : "=w"(to) : "r"(bits));
  return to;
}

[[gnu::always_inline]] inline void set_high_half(FourFloats& to, Bits64 bits) {
  asm volatile("ins %0.d[1], %1" : "+w"(to) : "r"(bits));
}

[[gnu::always_inline]] inline Bits64 load_two(const float* from) {
  Bits64 bits = 0;
  asm volatile("ldr %0, %1" : "=r"(bits) : "m"(*reinterpret_cast<const Bits64*>(from)));
  return bits;
}

[[gnu::always_inline]] inline Bits64 load_one(const float* from) {
  Bits64 bits = 0;
  asm volatile("ldr %w0, %1" : "=r"(bits) : "m"(*reinterpret_cast<const Bits32*>(from)));
  return bits;
}

[[gnu::always_inline]] inline Bits64 join(Bits64 low, Bits64 high) {
  Bits64 bits = 0;
  asm volatile("orr %0, %1, %2, lsl 32" : "=r"(bits) : "r"(low), "r"(high));
  return bits;
}

// What is done for the next term beside a multiply-add. `number` is that of a vector of weights, of
// a pixel or of a pair of pixels.
enum class Work {
  LookUp,     // where the pixels lie
  Move,       // there
  LoadOne,    // a pixel
  Join,       // two pixels to a pair
  LoadTwo,    // a pair, of pixels that lie side by side
  LoadHigh,   // the high half of a vector of weights, to an integer register
  Ahead,      // how far ahead a pixel of a later sum lies,
  Prefetch,   // which is asked for
  CountDown,  // the terms that are left
  LowHalf,    // of a vector of weights, from memory; after the last product with the present ones
  HighHalf,   // of a vector of weights
  PixelPair,  // to a vector register; after the last product with the present ones
};

struct WorkStep {
  Work work = Work::LookUp;
  Index number = 0;
  bool present = false;  // of a vector register: the present term's, not the next one's
};

// Which work follows which product.
template <Index kCount, Index kParts, class Pixels>
struct WorkPlan {
  static constexpr Index kProducts = kCount * kParts;
  static constexpr Index kPairs = (kCount + 1) / 2;
  static constexpr Index kMostSteps = 6 * kCount + 4 * kParts;

  WorkStep integers[kMostSteps];  // in order; product p is followed by those up to integers_end[p]
  Index integers_end[kProducts] = {};
  Index integers_count = 0;
  WorkStep vectors[kMostSteps];  // likewise
  Index vectors_end[kProducts] = {};
  Index vectors_count = 0;
  Index begin_count = 0;  // of those, the first, before the first product

  constexpr WorkPlan() {
    plan_integers();
    plan_vectors();
    spread_integers();
  }

  // Whether everything finds what it needs: the next term's or, before that is loaded, the present
  // one's.
  [[nodiscard]] constexpr bool ordered() const {
    for (Index v = begin_count; v < vectors_count; ++v) {
      for (Index i = 0; i < integers_count; ++i) {
        const bool loaded = product_of(i, integers_end) <= product_of(v, vectors_end);
        if (feeds(integers[i], vectors[v]) && loaded == vectors[v].present) {
          return false;
        }
      }
    }
    return true;
  }

 private:
  // The product that a step follows; kProducts if none does.
  static constexpr Index product_of(Index step, const Index (&ends)[kProducts]) {
    Index product = 0;
    while (product < kProducts && ends[product] <= step) {
      ++product;
    }
    return product;
  }

  // Whether `step` needs what `work` assigns. All of a term's weights lie relative to where its
  // first are loaded from, or to where a table says.
  static constexpr bool feeds(const WorkStep& work, const WorkStep& step) {
    switch (step.work) {
      case Work::LowHalf:
        return Pixels::kWeightsByTable ? work.work == Work::Move
                                       : work.work == Work::LoadHigh && work.number == 0;
      case Work::HighHalf:
        return work.work == Work::LoadHigh && work.number == step.number;
      case Work::PixelPair:
        return (work.work == Work::LoadOne && work.number / 2 == step.number) ||
               ((work.work == Work::Join || work.work == Work::LoadTwo) &&
                work.number == step.number);
      default:
        return false;
    }
  }

  // Nothing waits for what it needs: a load takes kLoadCycles, and products stand between.
  constexpr void plan_integers() {
    Index count = 0;
    const auto add = [&](Work work, Index number) { integers[count++] = {work, number}; };
    Index part = 0;  // of the weights
    const auto add_other = [&] {
      if (Pixels::kLookAhead && part == kParts - 1) {
        add(Work::Ahead, 0);
      }
      if (part < kParts) {
        add(Work::LoadHigh, part);
      } else if (Pixels::kPrefetch && part == kParts) {
        add(Work::Prefetch, 0);
      }
      ++part;
    };
    if (Pixels::kLookUp) {
      add(Work::LookUp, 0);
    }
    if (kParts == 2) {
      // The last weights' low half comes before the next term's first high half.
      add(Work::CountDown, 0);
      if (!Pixels::kLookUp) {
        add(Work::Move, 0);
      }
      add_other();
    } else {
      if (!Pixels::kWeightsByTable) {
        add_other();
      }
      add(Work::CountDown, 0);
    }
    if (Pixels::kLookUp || kParts != 2) {
      add(Work::Move, 0);
    }
    while (part < kParts / 2) {
      add_other();
    }
    constexpr Index kAhead = kLoadCycles - 1;  // pixels between the loads of a pair and its join
    for (Index i = 0; i < kCount + kAhead; ++i) {
      if (i >= kCount) {
        add_other();
      } else if (!Pixels::kSideBySide) {
        add(Work::LoadOne, i);
      } else if (i % 2 == 0) {
        add(Work::LoadTwo, i / 2);
      }
      if (!Pixels::kSideBySide && i >= kAhead && (i - kAhead) % 2 == 1) {
        add(Work::Join, (i - kAhead) / 2);
      }
    }
    while (part <= kParts) {
      add_other();
    }
    integers_count = count;
  }

  // Spread over the products; earlier only where something else would come too late.
  constexpr void spread_integers() {
    Index last = kProducts;
    do {
      for (Index p = 0; p < kProducts; ++p) {
        const Index end = (integers_count * (p + 1) + last - 1) / last;
        integers_end[p] = end < integers_count ? end : integers_count;
      }
      --last;
    } while (!ordered() && last > 0);
  }

  // One or two, which take a cycle together. A load of a vector does not begin four cycles after a
  // multiply-add: so a cycle of moves or loads and three products go before each, where counts of
  // products allow.
  constexpr void plan_vectors() {
    if constexpr (kParts == 4 && kCount == 6) {
      own(0, low(3), pair(1));
      own(3, high(3), pair(2));
      next(6, low(0));
      next(9, high(0));
      next(12, low(1));
      next(15, high(1));
      next(18, low(2));
      next(21, high(2), pair(0));
    } else if constexpr (kParts == 4 && kCount == 5) {
      own(0, low(3), pair(1));
      own(3, high(3), pair(2));
      own(6, high(2));
      next(6, low(0));
      next(9, high(0));
      next(12, low(1));
      next(15, low(2), high(1));
      next(17, pair(0));
    } else if constexpr (kParts == 4 && kCount == 4) {
      own(0, low(3), pair(0));
      own(0, pair(1));
      own(4, high(3), high(2));
      next(7, low(0));
      next(10, low(1), high(0));
      next(13, low(2), high(1));
    } else if constexpr (kParts == 2 && kCount == 8) {
      own(0, low(1), pair(2));
      own(5, high(1), pair(3));
      next(10, low(0), pair(0));
      next(14, high(0), pair(1));
    } else if constexpr (kParts == 2 && kCount > 8) {
      constexpr Index kFirst = kCount == 9 ? 2 : 1;
      own(kFirst, low(1), pair(3));
      own(kFirst + 4, high(1), pair(4));
      if (kPairs > 5) {
        own(kFirst + 7, pair(5));
      }
      next(kProducts + kFirst - 9, pair(0));
      next(kProducts + kFirst - 6, low(0), pair(1));
      next(kProducts + kFirst - 3, high(0), pair(2));
    } else {
      plan_few_vectors();
    }
    for (Index p = products_planned; p < kProducts; ++p) {
      vectors_end[p] = vectors_count;
    }
  }

  // Where products are few, as soon as registers are free: in front of the first product, at the
  // latest.
  constexpr void plan_few_vectors() {
    for (Index i = 0; i < kPairs; ++i) {
      own(0, pair(i));
    }
    own(0, low(kParts - 1));
    own(kCount, high(kParts - 1));
    for (Index part = 0; part + 1 < kParts; ++part) {
      next((part + 1) * kCount, low(part));
      if (part > 0) {
        next((part + 1) * kCount, high(part - 1));
      }
    }
    next(kProducts, high(kParts - 2));
  }

  static constexpr WorkStep low(Index part) { return {Work::LowHalf, part}; }
  static constexpr WorkStep high(Index part) { return {Work::HighHalf, part}; }
  static constexpr WorkStep pair(Index number) { return {Work::PixelPair, number}; }

  template <class... Steps>
  constexpr void own(Index products, WorkStep step, Steps... more) {
    step.present = true;
    next(products, step);
    if constexpr (sizeof...(more) > 0) {
      own(products, more...);
    }
  }

  // After so many products of a term, in ascending order.
  template <class... Steps>
  constexpr void next(Index products, WorkStep step, Steps... more) {
    for (; products_planned < products - 1; ++products_planned) {
      vectors_end[products_planned] = vectors_count;
    }
    vectors[vectors_count++] = step;
    if (products == 0) {
      begin_count = vectors_count;
    }
    if constexpr (sizeof...(more) > 0) {
      next(products, more...);
    }
  }

  Index products_planned = 0;
  static constexpr Index kLoadCycles = 4;  // until a half from memory is there
};

// The sums of kCount pixels, or terms, in kWidth channels each. `Pixels` says where a term's pixels
// lie.
template <Index kCount, Index kWidth, Index kStep, class Pixels>
class InOrderTile {
 public:
  RegisterTile<float, kWidth> sums[1][kCount];

  // Adds `terms` terms, 1 or more; their weights are kStep elements apart.
  [[gnu::always_inline]] void add_terms(const float* weights, Pixels pixels, Index terms) {
    asm volatile("" : : : "memory");  // not all loads below say what they read
    left_ = terms;
    weights += kHigh - kStep;
    load_first(weights, pixels);
    while (left_ != 0) {
      add_term<true>(weights, pixels, Products{});
    }
    add_term<false>(weights, pixels, Products{});
  }

 private:
  static constexpr Index kFour = 4;  // elements of a vector
  static constexpr Index kParts = kWidth / kFour;
  static constexpr WorkPlan<kCount, kParts, Pixels> kPlan{};
  static_assert(kPlan.ordered());
  static constexpr Index kProducts = kCount * kParts;
  static constexpr Index kPairs = (kCount + 1) / 2;
  static constexpr Index kHigh = 2;  // of its low half: `weights` points behind those of a term
  using Products = std::make_integer_sequence<Index, kProducts>;

  // Adds the present term, and meanwhile loads the next if there is one.
  template <bool kNext, Index... kProduct>
  [[gnu::always_inline]] void add_term(const float*& weights,
                                       Pixels& pixels,
                                       std::integer_sequence<Index, kProduct...> /*products*/) {
    do_vectors<kNext, 0>(
        weights, pixels, std::make_integer_sequence<Index, kPlan.begin_count>{});
    (add_product_of<kNext, kProduct>(weights, pixels), ...);
  }

  template <bool kNext, Index kProduct>
  [[gnu::always_inline]] void add_product_of(const float*& weights, Pixels& pixels) {
    constexpr Index kPixel = kProduct % kCount;
    constexpr Index kPart = kProduct / kCount;
    multiply_add<kPixel % 2>(sums[0][kPixel].parts[kPart], weights_[kPart], pixels_[kPixel / 2]);
    if constexpr (kNext) {
      constexpr Index kBegin = kProduct == 0 ? 0 : kPlan.integers_end[kProduct - 1];
      constexpr Index kSteps = kPlan.integers_end[kProduct] - kBegin;
      do_integers<kBegin>(weights, pixels, std::make_integer_sequence<Index, kSteps>{});
    }
    constexpr Index kBegin =
        kProduct == 0 ? kPlan.begin_count : kPlan.vectors_end[kProduct - 1];
    constexpr Index kSteps = kPlan.vectors_end[kProduct] - kBegin;
    do_vectors<kNext, kBegin>(
        weights, pixels, std::make_integer_sequence<Index, kSteps>{});
  }

  // All but what add_term does of a term's own.
  [[gnu::always_inline]] void load_first(const float*& weights, Pixels& pixels) {
    constexpr Index kIntegers = kPlan.integers_end[kProducts - 1];
    constexpr Index kVectors = kPlan.vectors_count;
    do_integers<0>(weights, pixels, std::make_integer_sequence<Index, kIntegers>{});
    do_first_vectors(weights, pixels, std::make_integer_sequence<Index, kVectors>{});
  }

  template <Index kFirst, Index... kWhich>
  [[gnu::always_inline]] void do_integers(const float*& weights,
                                          Pixels& pixels,
                                          std::integer_sequence<Index, kWhich...> /*steps*/) {
    (do_step<kPlan.integers[kFirst + kWhich].work, kPlan.integers[kFirst + kWhich].number>(weights,
                                                                                         pixels),
     ...);
  }

  template <bool kNext, Index kFirst, Index... kWhich>
  [[gnu::always_inline]] void do_vectors(const float*& weights,
                                         Pixels& pixels,
                                         std::integer_sequence<Index, kWhich...> /*steps*/) {
    (do_vector<kNext, true, kFirst + kWhich>(weights, pixels), ...);
  }

  template <Index... kWhich>
  [[gnu::always_inline]] void do_first_vectors(const float*& weights,
                                               Pixels& pixels,
                                               std::integer_sequence<Index, kWhich...> /*steps*/) {
    (do_vector<true, false, kWhich>(weights, pixels), ...);
  }

  template <bool kNext, bool kOwn, Index kWhich>
  [[gnu::always_inline]] void do_vector(const float*& weights, Pixels& pixels) {
    constexpr WorkStep kStepHere = kPlan.vectors[kWhich];
    if constexpr (kStepHere.present ? kOwn : kNext) {
      do_step<kStepHere.work, kStepHere.number>(weights, pixels);
    }
  }

  template <Work kWork, Index kNumber>
  [[gnu::always_inline]] void do_step(const float*& weights, Pixels& pixels) {
    if constexpr (kWork == Work::LookUp) {
      pixels.look_up();
    } else if constexpr (kWork == Work::Move) {
      if constexpr (Pixels::kWeightsByTable) {
        pixels.move(weights);
      } else {
        pixels.move();
      }
    } else if constexpr (kWork == Work::Ahead) {
      pixels.look_ahead(left_);
    } else if constexpr (kWork == Work::Prefetch) {
      pixels.prefetch();
    } else if constexpr (kWork == Work::CountDown) {
      asm volatile("sub %0, %0, 1" : "+r"(left_));
    } else if constexpr (kWork == Work::LoadOne) {
      (kNumber % 2 == 0 ? low_pixels_ : high_pixels_)[kNumber / 2] =
          load_one(pixels.template at<kNumber>());
    } else if constexpr (kWork == Work::Join) {
      low_pixels_[kNumber] = join(low_pixels_[kNumber], high_pixels_[kNumber]);
    } else if constexpr (kWork == Work::LoadTwo) {
      if constexpr (Pixels::kWeightsByTable && kNumber == 0) {
        low_pixels_[0] = pixels.load_next();
      } else {
        low_pixels_[kNumber] = load_two(pixels.template at<2 * kNumber>());
      }
    } else if constexpr (kWork == Work::LoadHigh) {
      if constexpr (kNumber == 0 && !Pixels::kWeightsByTable) {
        asm volatile("ldr %0, [%1, %2]!"
                     : "=r"(high_[0]), "+r"(weights)
                     : "i"(kStep * static_cast<Index>(sizeof(float))));
      } else {
        high_[kNumber] = load_two(weights + kNumber * kFour);
      }
    } else if constexpr (kWork == Work::LowHalf) {
      weights_[kNumber] = low_half(weights + kNumber * kFour - kHigh);
    } else if constexpr (kWork == Work::HighHalf) {
      set_high_half(weights_[kNumber], high_[kNumber]);
    } else {
      pixels_[kNumber] = low_half(low_pixels_[kNumber]);
    }
  }

  Index left_ = 0;
  FourFloats weights_[kParts];
  FourFloats pixels_[kPairs];
  Bits64 high_[kParts];
  Bits64 low_pixels_[kPairs];
  Bits64 high_pixels_[kPairs];
};

// What a register holds that no compiler should make up anew for each term.
[[gnu::always_inline]] inline Index kept(Index value) {
  asm("" : "+r"(value));
  return value;
}

// Of WeightedSum: where a term's pixels lie says a table. They are kStep elements apart, or `step`
// where kStep is 0.
template <Index kWidth, Index kCount, Index kStep>
struct TermPixels {
  static constexpr bool kLookUp = true;
  static constexpr bool kWeightsByTable = false;
  static constexpr bool kSideBySide = false;
  static constexpr bool kPrefetch = kStep == kBlockChannels && kWidth == kBlockChannels;
  static constexpr bool kLookAhead = kPrefetch;
  const float* in;
  const Index* offsets;
  Index distance[kCount];  // from the first pixel, where kStep is 0
  Index offset = 0;
  const float* place = nullptr;
  Index ahead = 0;

  [[gnu::always_inline]] TermPixels(const float* first, const Index* table, Index step)
      : in(first), offsets(table) {
#pragma GCC unroll 16
    for (Index p = 0; p < kCount; ++p) {
      distance[p] = kept(p * step);
    }
  }

  [[gnu::always_inline]] void look_up() {
    asm volatile("ldr %0, [%1], 8" : "=r"(offset), "+r"(offsets));
  }
  [[gnu::always_inline]] void move() {
    asm volatile("add %0, %1, %2, lsl 2" : "=r"(place) : "r"(in), "r"(offset));
  }
  template <Index kPixel>
  [[gnu::always_inline]] const float* at() const {
    return place + (kStep != 0 || kPixel == 0 ? kPixel * kStep : distance[kPixel]);
  }
  // One of the next 16 pixels.
  [[gnu::always_inline]] void look_ahead(Index left) {
    static_assert(kBlockChannels == 16);
    asm volatile("ubfiz %0, %1, 6, 4" : "=r"(ahead) : "r"(left));
  }
  [[gnu::always_inline]] void prefetch() {
    asm volatile("prfm pldl1keep, [%0, %1]" : : "r"(place), "r"(ahead));
  }
};

template <Index kWidth, Index kCount, Index kStep>
void sum_pixels_in_order(const WeightedSum<float>& job) {
  using Pixels = TermPixels<kWidth, kCount, kStep>;
  InOrderTile<kCount, kWidth, kBlockChannels, Pixels> tile;
  if (job.start == nullptr) {
    load_sums(job.sums, job.sums_step, 0, tile.sums);
  } else {
    load_sums(job.start, 0, 0, tile.sums);
  }
  for (Index i = 0; i < job.tap_count && job.terms > 0; ++i) {
    const Tap<float>& tap = job.taps[i];
    tile.add_terms(tap.weights, Pixels(job.in + tap.offset, job.offsets, job.in_step), job.terms);
  }
  store_sums(tile.sums, job.sums_step, 0, job.sums);
}

// Of OuterSum: the numbers that a pixel of the gradient meets, in the place of pixels.
template <Index kCount>
struct WindowPixels {
  static constexpr bool kLookUp = false;
  static constexpr bool kWeightsByTable = false;
  static constexpr bool kSideBySide = false;
  static constexpr bool kPrefetch = true;
  static constexpr bool kLookAhead = false;
  static constexpr Index kAhead = 3072;  // bytes
  Index step;
  Index distance[kCount];
  Index ahead;  // bytes
  const float* place = nullptr;

  [[gnu::always_inline]] WindowPixels(const Index* offsets, Index step_to_next)
      : step(step_to_next) {
#pragma GCC unroll 16
    for (Index t = 0; t < kCount; ++t) {
      distance[t] = kept(offsets[t]);
    }
    ahead = kept(offsets[0] * static_cast<Index>(sizeof(float)) + kAhead);
  }

  [[gnu::always_inline]] WindowPixels from(const float* in) const {
    WindowPixels pixels = *this;
    pixels.place = in - step;
    return pixels;
  }
  [[gnu::always_inline]] void move() {
    asm volatile("add %0, %0, %1, lsl 2" : "+r"(place) : "r"(step));
  }
  template <Index kPixel>
  [[gnu::always_inline]] const float* at() const {
    return place + distance[kPixel];
  }
  [[gnu::always_inline]] void prefetch() {
    asm volatile("prfm pldl1keep, [%0, %1]" : : "r"(place), "r"(ahead));
  }
};

template <Index kWidth, Index kCount>
void outer_terms_in_order(const OuterSum<float>& job, Index first) {
  using Pixels = WindowPixels<kCount>;
  InOrderTile<kCount, kWidth, kWidth, Pixels> tile;
  float* to = job.sums + first * kBlockChannels;
  load_sums(to, kBlockChannels, 0, tile.sums);
  const Pixels pixels(job.offsets + first, job.in_step);
  for (Index row = 0; row < job.rows && job.cols > 0; ++row) {
    tile.add_terms(
        job.gradient + row * job.gradient_row, pixels.from(job.in + row * job.in_row), job.cols);
  }
  store_sums(tile.sums, kBlockChannels, 0, to);
}

// Of Winograd's products: terms are kTermStep elements apart, their pixels kPixelStep.
template <Index kTermStep, Index kPixelStep>
struct TilePixels {
  static constexpr bool kLookUp = false;
  static constexpr bool kWeightsByTable = false;
  static constexpr bool kSideBySide = kPixelStep == 1;
  static constexpr bool kPrefetch = false;
  static constexpr bool kLookAhead = false;
  const float* place;

  [[gnu::always_inline]] explicit TilePixels(const float* first) : place(first - kTermStep) {}
  [[gnu::always_inline]] void move() {
    asm volatile("add %0, %0, %1"
                 : "+r"(place)
                 : "i"(kTermStep * static_cast<Index>(sizeof(float))));
  }
  template <Index kPixel>
  [[gnu::always_inline]] const float* at() const {
    return place + kPixel * kPixelStep;
  }
};

template <Index kCount>
void product_pixels_in_order(const PixelProduct<float>& job) {
  using Pixels = TilePixels<1, kBlockChannels>;
  InOrderTile<kCount, kBlockChannels, kBlockChannels, Pixels> tile;
  if (job.assign) {
#pragma GCC unroll 16
    for (auto& sum : tile.sums[0]) {
      sum = {};
    }
  } else {
    load_sums(job.sums, kBlockChannels, 0, tile.sums);
  }
  for (Index first = 0; first < job.channels; first += kBlockChannels) {
    tile.add_terms(job.weights + first * kBlockChannels,
                   Pixels(job.in + first / kBlockChannels * job.in_block),
                   job.channels - first < kBlockChannels ? job.channels - first : kBlockChannels);
  }
  store_sums(tile.sums, kBlockChannels, 0, job.sums);
}

inline constexpr Index kInOrderProductTerms = 4;
static_assert(kProductChannels % kInOrderProductTerms == 0);

inline void product_weights_in_order(const WeightProduct<float>& job) {
  using Pixels = TilePixels<kBlockChannels, 1>;
  InOrderTile<kInOrderProductTerms, kBlockChannels, kBlockChannels, Pixels> tile;
  if (job.assign) {
#pragma GCC unroll 16
    for (auto& sum : tile.sums[0]) {
      sum = {};
    }
  } else {
    load_sums(job.sums, kBlockChannels, 0, tile.sums);
  }
  if (job.pixels > 0) {
    tile.add_terms(job.gradient, Pixels(job.in), job.pixels);
  }
  store_sums(tile.sums, kBlockChannels, 0, job.sums);
}

// Of PlaneSum: a term's weights, one of each filter, in the place of pixels. What they are multiplied
// by are pixels side by side, in the place of weights: where these lie says a table.
struct PlaneWeights {
  static constexpr bool kLookUp = true;
  static constexpr bool kWeightsByTable = true;
  static constexpr bool kSideBySide = true;
  static constexpr bool kPrefetch = false;
  static constexpr bool kLookAhead = false;
  const float* in;  // behind a vector's low half
  const Index* offsets;
  const float* place;
  Index offset = 0;

  PlaneWeights(const float* first, const Index* table, const float* weights)
      : in(first + 2), offsets(table), place(weights - kNarrowChannels) {}
  [[gnu::always_inline]] void look_up() {
    asm volatile("ldr %0, [%1], 8" : "=r"(offset), "+r"(offsets));
  }
  [[gnu::always_inline]] void move(const float*& pixels) const {
    asm volatile("add %0, %1, %2, lsl 2" : "=r"(pixels) : "r"(in), "r"(offset));
  }
  // The next term's first two.
  [[gnu::always_inline]] Bits64 load_next() {
    Bits64 bits = 0;
    asm volatile("ldr %0, [%1, %2]!"
                 : "=r"(bits), "+r"(place)
                 : "i"(kNarrowChannels * static_cast<Index>(sizeof(float))));
    return bits;
  }
  template <Index kFilter>
  [[gnu::always_inline]] const float* at() const {
    return place + kFilter;
  }
};

template <Index kFilters>
void plane_vector_in_order(const PlaneSum<float>& job, Index start) {
  InOrderTile<kFilters, kBlockChannels, kBlockChannels, PlaneWeights> tile;
#pragma GCC unroll 4
  for (Index k = 0; k < kFilters; ++k) {
#pragma GCC unroll 4
    for (auto& part : tile.sums[0][k].parts) {
      part = FourFloats{} + job.start[k];
    }
  }
  if (job.terms > 0) {
    tile.add_terms(job.in, PlaneWeights(job.in + start, job.offsets, job.weights), job.terms);
  }
  alignas(64) float planes[kNarrowChannels][kBlockChannels];
#pragma GCC unroll 4
  for (Index k = 0; k < kFilters; ++k) {
    store_register_tile(planes[k], tile.sums[0][k]);
  }
  for (Index k = kFilters; k < kNarrowChannels; ++k) {
    store_register_tile(planes[k], RegisterTile<float>{});
  }
  transpose_any<float, false>(
      {planes[0], kBlockChannels, job.cells + start * job.cells_step, job.cells_step},
      job.cells_step,
      kBlockChannels);
}

// More filters are better summed as narrow blocks.
inline constexpr Index kInOrderPlaneFilters = kNarrowChannels / 2;

inline void plane_sum_in_order(const PlaneSum<float>& job, Index filters) {
  static_assert(kInOrderPlaneFilters == 4);
  if (filters > kInOrderPlaneFilters) {
    plane_sum_any<float>(job, filters);
    return;
  }
  constexpr void (*kOfFilters[])(const PlaneSum<float>&, Index) = {plane_vector_in_order<1>,
                                                                   plane_vector_in_order<2>,
                                                                   plane_vector_in_order<3>,
                                                                   plane_vector_in_order<4>};
  for (Index v = 0; v < job.vectors; ++v) {
    kOfFilters[filters - 1](job, job.starts[v]);
  }
}

// The kernels for 1, 2, ... pixels or terms.
template <class Counts>
struct InOrderKernels;
template <Index... kBefore>
struct InOrderKernels<std::integer_sequence<Index, kBefore...>> {
  template <Index kWidth, Index kStep>
  static constexpr void (*kSums[])(const WeightedSum<float>&) = {
      sum_pixels_in_order<kWidth, kBefore + 1, kStep>...};
  template <Index kWidth>
  static constexpr void (*kOuterSums[])(const OuterSum<float>&, Index) = {
      outer_terms_in_order<kWidth, kBefore + 1>...};
  static constexpr void (*kProducts[])(const PixelProduct<float>&) = {
      product_pixels_in_order<kBefore + 1>...};
};

// Sums of kWidth channels at once: 24 of the 32 registers, weights and pixels have the others.
template <Index kWidth>
constexpr Index kInOrderPixels = 96 / kWidth;
template <Index kWidth>
using InOrderKernelsOf = InOrderKernels<std::make_integer_sequence<Index, kInOrderPixels<kWidth>>>;

template <Index kWidth>
void sum_in_order(const WeightedSum<float>& job, Index pixels) {
  using Kernels = InOrderKernelsOf<kWidth>;
  if (job.in_step == kBlockChannels) {
    Kernels::template kSums<kWidth, kBlockChannels>[pixels - 1](job);
  } else {
    Kernels::template kSums<kWidth, 0>[pixels - 1](job);
  }
}

// In runs as equal as can be.
template <Index kWidth>
void outer_sum_in_order(const OuterSum<float>& job, Index terms) {
  constexpr Index kMost = kInOrderPixels<kWidth>;
  Index first = 0;
  for (Index runs = (terms + kMost - 1) / kMost; runs > 0; --runs) {
    const Index count = (terms - first + runs - 1) / runs;
    InOrderKernelsOf<kWidth>::template kOuterSums<kWidth>[count - 1](job, first);
    first += count;
  }
}

inline void pixel_product_in_order(const PixelProduct<float>& given, Index pixels, Index blocks) {
  PixelProduct<float> job = given;
  for (Index block = 0; block < blocks; ++block) {
    InOrderKernelsOf<kBlockChannels>::kProducts[pixels - 1](job);
    job.weights += job.weights_block;
    job.sums += job.sums_block;
  }
}

inline void weight_product_in_order(const WeightProduct<float>& given, Index blocks) {
  for (Index channel = 0; channel < kProductChannels; channel += kInOrderProductTerms) {
    WeightProduct<float> job = given;
    job.in += channel;
    job.sums += channel * kBlockChannels;
    for (Index block = 0; block < blocks; ++block) {
      product_weights_in_order(job);
      job.gradient += job.gradient_block;
      job.sums += job.sums_block;
    }
  }
}

// `kernels`, but for sums over a convolution's terms.
constexpr BlockKernels<float> with_sums_in_order(BlockKernels<float> kernels) {
  kernels.sum_blocks = 1;
  kernels.sum_pixels = kInOrderPixels<kBlockChannels>;
  kernels.weighted_sum = [](const WeightedSum<float>& job, Index pixels, Index /*blocks*/) {
    sum_in_order<kBlockChannels>(job, pixels);
  };
  kernels.outer_sum = [](const OuterSum<float>& job, Index terms, Index /*blocks*/) {
    outer_sum_in_order<kBlockChannels>(job, terms);
  };
  kernels.narrow_pixels = kInOrderPixels<kNarrowChannels>;
  kernels.narrow_sum = sum_in_order<kNarrowChannels>;
  kernels.narrow_outer_sum = outer_sum_in_order<kNarrowChannels>;
  kernels.plane_filters = kInOrderPlaneFilters;
  kernels.plane_sum = plane_sum_in_order;
  kernels.product_pixels = kInOrderPixels<kBlockChannels>;
  kernels.pixel_product = pixel_product_in_order;
  kernels.weight_product = weight_product_in_order;
  return kernels;
}
