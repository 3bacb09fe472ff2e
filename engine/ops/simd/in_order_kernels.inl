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
  Index begin_end = 0;  // of those after the last product, which the next term begins with

  constexpr WorkPlan() {
    plan_integers();
    plan_vectors();
    spread_integers();
  }

  // Whether everything finds what it needs: the next term's or, before that is loaded, the present
  // one's.
  [[nodiscard]] constexpr bool ordered() const {
    for (Index v = 0; v < begin_end; ++v) {
      const WorkStep& step = vectors[v];
      const Index product = product_of(v, vectors_end);
      const bool at_begin = product == kProducts;
      for (Index i = 0; i < integers_count; ++i) {
        if (!feeds(integers[i], step)) {
          continue;
        }
        const bool loaded = product_of(i, integers_end) <= product;
        const bool present = product < kCount && step.work != Work::LowHalf;
        if (!at_begin && loaded == present) {
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
  // first are loaded from.
  static constexpr bool feeds(const WorkStep& work, const WorkStep& step) {
    switch (step.work) {
      case Work::LowHalf:
        return work.work == Work::LoadHigh && work.number == 0;
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
      if (part < kParts) {
        add(Work::LoadHigh, part);
      } else if (part == kParts && Pixels::kLookAhead) {
        add(Work::Ahead, 0);
      } else if (part == kParts + 1 && Pixels::kPrefetch) {
        add(Work::Prefetch, 0);
      }
      ++part;
    };
    if (Pixels::kLookUp) {
      add(Work::LookUp, 0);
    }
    add_other();
    add(Work::CountDown, 0);
    add(Work::Move, 0);
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
    while (part < kParts + 2) {
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

  // Two at a time, which take a cycle together.
  constexpr void plan_vectors() {
    Index count = 0;
    Index waiting = 0;
    const auto add = [&](Work work, Index number) { vectors[count + waiting++] = {work, number}; };
    // With two parts the first weights' halves and the last pair come later than with more, so that
    // no product waits for them.
    constexpr bool kFew = kParts == 2 && kCount >= 2 * kLoadCycles;
    for (Index part = 0; part < kParts; ++part) {
      const bool last_part = part + 1 == kParts;
      for (Index i = 0; i < kCount; ++i) {
        const bool last = i + 1 == kCount;
        if (kFew && part == 0 && i == kLoadCycles) {
          add(Work::HighHalf, kParts - 1);
          add(Work::PixelPair, kPairs - 1);
        }
        if (!kFew && !last_part && last) {
          add(Work::LowHalf, part);
          add(Work::HighHalf, part == 0 ? kParts - 1 : part - 1);
        }
        if (kFew && last_part && i == 1) {
          add(Work::LowHalf, part - 1);
        }
        if (kFew && last_part && i == kLoadCycles + 1) {
          add(Work::HighHalf, part - 1);
        }
        if (last_part && (i % 2 == 1 || last) && !(kFew && i / 2 == kPairs - 1)) {
          add(Work::PixelPair, i / 2);
        }
        if (!kFew && last_part && i == last_cycles()) {
          add(Work::HighHalf, part - 1);
        }
        if (last_part && last) {
          add(Work::LowHalf, part);
        }
        const Index ready = last && last_part ? 0 : last ? waiting : waiting / 2 * 2;
        count += ready;
        waiting -= ready;
        vectors_end[part * kCount + i] = count;
      }
    }
    begin_end = count + waiting;
  }

  static constexpr Index last_cycles() {
    return kCount > kLoadCycles ? kLoadCycles - 1 : kCount - 1;
  }

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
    constexpr Index kBegin = kPlan.vectors_end[kProducts - 1];
    constexpr Index kSteps = kPlan.begin_end - kBegin;
    do_vectors<true, true, kBegin>(weights, pixels, std::make_integer_sequence<Index, kSteps>{});
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
    constexpr Index kBegin = kProduct == 0 ? 0 : kPlan.vectors_end[kProduct - 1];
    constexpr Index kSteps = kPlan.vectors_end[kProduct] - kBegin;
    do_vectors<kNext, kPart == 0, kBegin>(
        weights, pixels, std::make_integer_sequence<Index, kSteps>{});
  }

  // All but the high half of the last weights, which add_term sets.
  [[gnu::always_inline]] void load_first(const float*& weights, Pixels& pixels) {
    constexpr Index kIntegers = kPlan.integers_end[kProducts - 1];
    constexpr Index kVectors = kPlan.vectors_end[kProducts - 1];
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

  // Between a term's first products, all but the loads are its own.
  template <bool kNext, bool kFirstPart, Index kFirst, Index... kWhich>
  [[gnu::always_inline]] void do_vectors(const float*& weights,
                                         Pixels& pixels,
                                         std::integer_sequence<Index, kWhich...> /*steps*/) {
    (do_vector<kNext,
               kFirstPart,
               kPlan.vectors[kFirst + kWhich].work,
               kPlan.vectors[kFirst + kWhich].number>(weights, pixels),
     ...);
  }

  template <bool kNext, bool kFirstPart, Work kWork, Index kNumber>
  [[gnu::always_inline]] void do_vector(const float*& weights, Pixels& pixels) {
    if constexpr (kNext || (kFirstPart && kWork != Work::LowHalf)) {
      do_step<kWork, kNumber>(weights, pixels);
    }
  }

  template <Index... kWhich>
  [[gnu::always_inline]] void do_first_vectors(const float*& weights,
                                               Pixels& pixels,
                                               std::integer_sequence<Index, kWhich...> /*steps*/) {
    (do_first<kWhich>(weights, pixels), ...);
  }

  template <Index kWhich>
  [[gnu::always_inline]] void do_first(const float*& weights, Pixels& pixels) {
    constexpr WorkStep kStepHere = kPlan.vectors[kWhich];
    if constexpr (kWhich >= kPlan.vectors_end[kCount - 1] || kStepHere.work == Work::LowHalf) {
      do_step<kStepHere.work, kStepHere.number>(weights, pixels);
    }
  }

  template <Work kWork, Index kNumber>
  [[gnu::always_inline]] void do_step(const float*& weights, Pixels& pixels) {
    if constexpr (kWork == Work::LookUp) {
      pixels.look_up();
    } else if constexpr (kWork == Work::Move) {
      pixels.move();
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
      low_pixels_[kNumber] = load_two(pixels.template at<2 * kNumber>());
    } else if constexpr (kWork == Work::LoadHigh) {
      if constexpr (kNumber == 0) {
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
  kernels.product_pixels = kInOrderPixels<kBlockChannels>;
  kernels.pixel_product = pixel_product_in_order;
  kernels.weight_product = weight_product_in_order;
  return kernels;
}
