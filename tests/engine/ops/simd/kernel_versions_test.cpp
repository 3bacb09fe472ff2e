// That the versions of the inner loops for one width of vectors compute the same bits, and read
// nothing beyond what they are given: on other processors than ARM's there is only one.
#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

#include "engine/ops/simd/block_kernel_versions.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

#if defined(__aarch64__) || (defined(__arm__) && defined(__ARM_PCS_VFP))

namespace {

using engine::BlockKernels;
using engine::kBlockChannels;
using engine::kNarrowChannels;
using tessera::Index;

#if defined(__aarch64__)
const BlockKernels<float>& kTested = engine::cortex_a53::kSingle;
#else
const BlockKernels<float>& kTested = engine::neon::kSingle;
#endif
const BlockKernels<float>& kExpected = engine::generic::kSingle;

// Signed random numbers that end where memory ends: whoever reads on is stopped by the system.
class Numbers {
 public:
  Numbers(Index count, unsigned seed) : count_(count) {
    const Index page = ::sysconf(_SC_PAGESIZE);
    const Index used = (count * static_cast<Index>(sizeof(float)) + page - 1) / page * page;
    bytes_ = static_cast<std::size_t>(used + page);
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory_ != MAP_FAILED);
    char* end = static_cast<char*>(memory_) + used;
    REQUIRE(::mprotect(end, static_cast<std::size_t>(page), PROT_NONE) == 0);
    values_ = reinterpret_cast<float*>(end) - count;
    std::mt19937 random(seed);
    for (Index i = 0; i < count; ++i) {
      values_[i] = static_cast<float>(random()) / 2147483648.0F - 1.0F;
    }
  }
  ~Numbers() { ::munmap(memory_, bytes_); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  [[nodiscard]] float* data() { return values_; }
  [[nodiscard]] bool same_bits(const Numbers& other) const {
    return std::memcmp(values_, other.values_, static_cast<std::size_t>(count_) * sizeof(float)) ==
           0;
  }

 private:
  Index count_;
  std::size_t bytes_ = 0;
  void* memory_ = nullptr;
  float* values_ = nullptr;
};

// A place for each term in a map whose pixels are `step` apart, in no order.
std::vector<Index> scattered(Index terms, Index most) {
  std::vector<Index> offsets;
  for (Index t = 0; t < terms; ++t) {
    offsets.push_back(t * 37 % (most + 1));
  }
  offsets.back() = most;
  return offsets;
}

// Two results of the same job, which begin with the same numbers.
struct Results {
  explicit Results(Index count) : tested(count, 3), expected(count, 3) {}
  Numbers tested;
  Numbers expected;
};

struct SumCase {
  Index pixels;
  Index in_step;
  Index terms;
  Index taps;
  bool with_start;
  bool narrow;
};

void check_sum(const SumCase& given) {
  CAPTURE(given.pixels);
  CAPTURE(given.in_step);
  CAPTURE(given.terms);
  CAPTURE(given.with_start);
  CAPTURE(given.narrow);
  const Index most = 160;
  Numbers in((given.pixels - 1) * given.in_step + most + given.taps, 1);
  Numbers weights(given.taps * given.terms * kBlockChannels, 2);
  Numbers start(kBlockChannels, 4);
  Results sums(given.pixels * kBlockChannels);
  const std::vector<Index> offsets = scattered(given.terms, most);
  std::vector<engine::Tap<float>> taps;
  for (Index i = 0; i < given.taps; ++i) {
    taps.push_back({i, weights.data() + i * given.terms * kBlockChannels});
  }
  engine::WeightedSum<float> job;
  job.in = in.data();
  job.in_step = given.in_step;
  job.taps = taps.data();
  job.tap_count = given.taps;
  job.offsets = offsets.data();
  job.terms = given.terms;
  job.start = given.with_start ? start.data() : nullptr;
  job.sums_step = kBlockChannels;
  const auto sum = [&](const BlockKernels<float>& kernels, Numbers& to) {
    job.sums = to.data();
    // The other version may take fewer pixels at once.
    const Index at_once = given.narrow ? kernels.narrow_pixels : kernels.sum_pixels;
    for (Index first = 0; first < given.pixels; first += at_once) {
      const Index pixels = std::min(at_once, given.pixels - first);
      engine::WeightedSum<float> part = job;
      part.in += first * job.in_step;
      part.sums += first * job.sums_step;
      given.narrow ? kernels.narrow_sum(part, pixels) : kernels.weighted_sum(part, pixels, 1);
    }
  };
  sum(kTested, sums.tested);
  sum(kExpected, sums.expected);
  CHECK(sums.tested.same_bits(sums.expected));
}

TEST_CASE("sums of terms have the same bits in order") {
  for (const bool narrow : {false, true}) {
    const Index most = narrow ? kTested.narrow_pixels : kTested.sum_pixels;
    for (Index pixels = 1; pixels <= most; ++pixels) {
      for (const Index step : {16, 3, 32}) {
        for (const Index terms : {1, 2, 3, 27}) {
          check_sum({pixels, step, terms, 1, true, narrow});
          check_sum({pixels, step, terms, 2, false, narrow});
        }
      }
    }
  }
}

void check_outer(Index terms, Index rows, Index cols, Index step, bool narrow) {
  CAPTURE(terms);
  CAPTURE(rows);
  CAPTURE(cols);
  CAPTURE(narrow);
  const Index most = 200;
  const Index width = narrow ? kNarrowChannels : kBlockChannels;
  const Index in_row = cols * step + 5;
  const std::vector<Index> offsets = scattered(terms, most);
  Numbers gradient(rows * cols * width, 1);
  Numbers in((rows - 1) * in_row + (cols - 1) * step + most + 1, 2);
  Results sums(terms * kBlockChannels);
  engine::OuterSum<float> job;
  job.gradient = gradient.data();
  job.gradient_row = cols * width;
  job.in = in.data();
  job.in_row = in_row;
  job.in_step = step;
  job.rows = rows;
  job.cols = cols;
  job.offsets = offsets.data();
  const auto sum = [&](const BlockKernels<float>& kernels, Numbers& to) {
    job.sums = to.data();
    narrow ? kernels.narrow_outer_sum(job, terms) : kernels.outer_sum(job, terms, 1);
  };
  sum(kTested, sums.tested);
  sum(kExpected, sums.expected);
  CHECK(sums.tested.same_bits(sums.expected));
}

TEST_CASE("sums of outer products have the same bits in order") {
  for (const bool narrow : {false, true}) {
    for (Index terms = 1; terms <= 30; ++terms) {
      check_outer(terms, 1, 1, 16, narrow);
      check_outer(terms, 3, 7, 16, narrow);
      check_outer(terms, 2, 5, 3, narrow);
    }
  }
}

TEST_CASE("sums of vectors of pixels have the same bits in order") {
  const Index most = 50;
  const std::vector<Index> starts{0, 16, 23};
  for (Index filters = 1; filters <= kNarrowChannels; ++filters) {
    for (const Index terms : {1, 2, 3, 25}) {
      for (const Index cells_step : {filters, kNarrowChannels}) {
        CAPTURE(filters);
        CAPTURE(terms);
        CAPTURE(cells_step);
        const std::vector<Index> offsets = scattered(terms, most);
        Numbers in(starts.back() + kBlockChannels + most, 1);
        Numbers weights(terms * kNarrowChannels, 2);
        Numbers start(kNarrowChannels, 4);
        Results cells((starts.back() + kBlockChannels) * cells_step);
        engine::PlaneSum<float> job;
        job.in = in.data();
        job.offsets = offsets.data();
        job.terms = terms;
        job.weights = weights.data();
        job.start = start.data();
        job.starts = starts.data();
        job.vectors = static_cast<Index>(starts.size());
        job.cells_step = cells_step;
        for (Index t = 0; t < terms; ++t) {
          std::fill_n(
              weights.data() + t * kNarrowChannels + filters, kNarrowChannels - filters, 0.F);
        }
        std::fill_n(start.data() + filters, kNarrowChannels - filters, 0.F);
        job.cells = cells.tested.data();
        kTested.plane_sum(job, filters);
        job.cells = cells.expected.data();
        kExpected.plane_sum(job, filters);
        for (Index cell = 0; cell < starts.back() + kBlockChannels; ++cell) {
          for (Index k = 0; k < filters; ++k) {
            const Index at = cell * cells_step + k;
            CHECK(std::memcmp(
                      cells.tested.data() + at, cells.expected.data() + at, sizeof(float)) == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("Winograd's products of tiles have the same bits in order") {
  const Index blocks = 2;
  for (Index pixels = 1; pixels <= kTested.product_pixels; ++pixels) {
    for (const Index channels : {1, 15, 16, 40}) {
      for (const bool assign : {false, true}) {
        CAPTURE(pixels);
        CAPTURE(channels);
        const Index in_block = pixels * kBlockChannels;
        Numbers in((channels + kBlockChannels - 1) / kBlockChannels * in_block, 1);
        Numbers weights(blocks * channels * kBlockChannels, 2);
        Results sums(blocks * pixels * kBlockChannels);
        const auto multiply = [&](const BlockKernels<float>& kernels, Numbers& to) {
          for (Index first = 0; first < pixels; first += kernels.product_pixels) {
            kernels.pixel_product({in.data() + first * kBlockChannels,
                                   in_block,
                                   channels,
                                   weights.data(),
                                   channels * kBlockChannels,
                                   to.data() + first * kBlockChannels,
                                   pixels * kBlockChannels,
                                   assign},
                                  std::min(kernels.product_pixels, pixels - first),
                                  blocks);
          }
        };
        multiply(kTested, sums.tested);
        multiply(kExpected, sums.expected);
        CHECK(sums.tested.same_bits(sums.expected));
      }
    }
  }
}

TEST_CASE("Winograd's products for gradients of weights have the same bits in order") {
  const Index blocks = 2;
  for (const Index pixels : {1, 2, 9}) {
    for (const bool assign : {false, true}) {
      CAPTURE(pixels);
      Numbers in((pixels - 1) * kBlockChannels + engine::kProductChannels, 1);
      Numbers gradient(blocks * pixels * kBlockChannels, 2);
      Results sums(blocks * engine::kProductChannels * kBlockChannels);
      const auto multiply = [&](const BlockKernels<float>& kernels, Numbers& to) {
        kernels.weight_product({in.data(),
                                gradient.data(),
                                pixels * kBlockChannels,
                                pixels,
                                to.data(),
                                engine::kProductChannels * kBlockChannels,
                                assign},
                               blocks);
      };
      multiply(kTested, sums.tested);
      multiply(kExpected, sums.expected);
      CHECK(sums.tested.same_bits(sums.expected));
    }
  }
}

#if defined(__aarch64__)

const engine::RowKernels<float>& kTestedRows = engine::cortex_a53::kSingleRows;
const engine::RowKernels<float>& kExpectedRows = engine::generic::kSingleRows;

constexpr std::array kActivations{partitioner::Activation::Linear,
                                  partitioner::Activation::Relu,
                                  partitioner::Activation::Leaky,
                                  partitioner::Activation::Relu6,
                                  partitioner::Activation::Ramp,
                                  partitioner::Activation::Logistic,
                                  partitioner::Activation::Tanh,
                                  partitioner::Activation::Swish,
                                  partitioner::Activation::Mish,
                                  partitioner::Activation::Gelu,
                                  partitioner::Activation::HardMish,
                                  partitioner::Activation::HardSigmoid,
                                  partitioner::Activation::HardSwish,
                                  partitioner::Activation::Elu};

// Calls check(channels, step, cells) for rows of vectors, side by side or not, and of others.
template <class Check>
void for_each_row(Check check) {
  for (const auto& [channels, step] :
       {std::array<Index, 2>{16, 16}, {8, 8}, {16, 32}, {3, 3}, {4, 4}}) {
    for (const Index cells : {0, 1, 2, 3, 4, 5, 9, 13}) {
      CAPTURE(channels);
      CAPTURE(step);
      CAPTURE(cells);
      check(channels, step, cells);
    }
  }
}

engine::BlockNorms<float> norms_of(unsigned seed) {
  std::mt19937 random(seed);
  const auto number = [&] { return static_cast<float>(random()) / 2147483648.0F; };
  engine::BlockNorms<float> norms;
  for (std::size_t lane = 0; lane < engine::kMostChannels; ++lane) {
    norms.mean[lane] = number() - 1;
    norms.inverse[lane] = 3 * number();
    norms.scale[lane] = 3 * number() - 2;
    norms.shift[lane] = number() - 1;
  }
  return norms;
}

struct Sums {
  std::array<double, engine::kMostChannels> first{};
  std::array<double, engine::kMostChannels> second{};

  [[nodiscard]] bool same_bits(const Sums& other) const {
    return std::memcmp(this, &other, sizeof(Sums)) == 0;
  }
};

// Numbers that rows of that many cells take, to the last channel of the last cell.
Index row_size(Index channels, Index step, Index cells) {
  return cells == 0 ? 0 : (cells - 1) * step + channels;
}

TEST_CASE("rows are normalised and activated to the same bits in order") {
  const engine::BlockNorms<float> norms = norms_of(1);
  for (const auto activation : kActivations) {
    CAPTURE(static_cast<int>(activation));
    for_each_row([&](Index channels, Index step, Index cells) {
      const Index size = row_size(channels, step, cells);
      Numbers x(size, 2);
      Results y(size);
      kTestedRows.normalize(
          {x.data(), step, y.tested.data(), step, cells, channels, &norms, activation});
      kExpectedRows.normalize(
          {x.data(), step, y.expected.data(), step, cells, channels, &norms, activation});
      CHECK(y.tested.same_bits(y.expected));
      kTestedRows.activate({x.data(), step, step, cells, channels}, activation, y.tested.data());
      kExpectedRows.activate(
          {x.data(), step, step, cells, channels}, activation, y.expected.data());
      CHECK(y.tested.same_bits(y.expected));
      // In its place.
      kTestedRows.activate(
          {y.tested.data(), step, step, cells, channels}, activation, y.tested.data());
      kExpectedRows.activate(
          {y.expected.data(), step, step, cells, channels}, activation, y.expected.data());
      CHECK(y.tested.same_bits(y.expected));
    });
  }
}

TEST_CASE("rows have the same bits in order on the way back through norm and activation") {
  const engine::BlockNorms<float> norms = norms_of(1);
  const engine::BlockNorms<float> by = norms_of(2);
  for (const auto activation : kActivations) {
    CAPTURE(static_cast<int>(activation));
    for_each_row([&](Index channels, Index step, Index cells) {
      const Index size = row_size(channels, step, cells);
      Numbers gradient(size, 2);
      Results x(size);
      Results through(size);
      Sums tested;
      Sums expected;
      const auto row_of = [&](Numbers& from) {
        return engine::NormalizeGradientRow<float>{
            from.data(), step, gradient.data(), step, cells, channels, &norms, activation};
      };
      kTestedRows.gradient_statistics(
          row_of(x.tested), tested.first.data(), tested.second.data(), through.tested.data());
      kExpectedRows.gradient_statistics(row_of(x.expected),
                                        expected.first.data(),
                                        expected.second.data(),
                                        through.expected.data());
      CHECK(tested.same_bits(expected));
      CHECK(through.tested.same_bits(through.expected));
      kTestedRows.normalize_gradient(row_of(x.tested), by, x.tested.data());
      kExpectedRows.normalize_gradient(row_of(x.expected), by, x.expected.data());
      CHECK(x.tested.same_bits(x.expected));
    });
  }
}

TEST_CASE("rows have the same bits in order on the way back through an activation alone") {
  for (const auto activation : kActivations) {
    CAPTURE(static_cast<int>(activation));
    for_each_row([&](Index channels, Index step, Index cells) {
      const Index size = row_size(channels, step, cells);
      Numbers x(size, 1);
      Numbers y(size, 2);
      Results gradient(size);
      Sums tested;
      Sums expected;
      kTestedRows.activation_gradient({x.data(),
                                       step,
                                       y.data(),
                                       step,
                                       gradient.tested.data(),
                                       step,
                                       cells,
                                       channels,
                                       activation},
                                      tested.first.data());
      kExpectedRows.activation_gradient({x.data(),
                                         step,
                                         y.data(),
                                         step,
                                         gradient.expected.data(),
                                         step,
                                         cells,
                                         channels,
                                         activation},
                                        expected.first.data());
      CHECK(gradient.tested.same_bits(gradient.expected));
      CHECK(tested.same_bits(expected));
    });
  }
}

TEST_CASE("sums over rows have the same bits in order") {
  for_each_row([&](Index channels, Index step, Index cells) {
    const Index size = row_size(channels, step, cells);
    Numbers x(size, 1);
    Numbers y(size, 2);
    Sums tested;
    Sums expected;
    kTestedRows.add_cells(x.data(), step, cells, channels, tested.first.data());
    kExpectedRows.add_cells(x.data(), step, cells, channels, expected.first.data());
    kTestedRows.add_products(
        {x.data(), step, step, cells, channels}, y.data(), tested.second.data());
    kExpectedRows.add_products(
        {x.data(), step, step, cells, channels}, y.data(), expected.second.data());
    CHECK(tested.same_bits(expected));
  });
}

// Windows of a max-pool: `side` x `side` cells, `stride` cells apart, in one row of windows.
struct Windows {
  Index side;
  Index stride;
};

TEST_CASE("max-pools have the same bits in order, there and back") {
  for (const auto& [side, stride] : {Windows{2, 2}, Windows{2, 1}, Windows{3, 2}}) {
    CAPTURE(side);
    CAPTURE(stride);
    for_each_row([&](Index channels, Index step, Index windows) {
      const Index row = windows == 0 ? 0 : ((windows - 1) * stride + side) * step;
      Numbers x(side * row, 1);
      Results y(windows * channels);
      std::vector<engine::ArgmaxOffset> tested(static_cast<std::size_t>(windows * channels), 99);
      std::vector<engine::ArgmaxOffset> expected = tested;
      engine::PoolRow<float> pool;
      pool.x = x.data();
      pool.x_row = row;
      pool.x_step = step;
      pool.x_window = stride * step;
      pool.rows = side;
      pool.cols = side;
      pool.windows = windows;
      pool.channels = channels;
      pool.y_step = channels;
      pool.argmax_step = channels;
      pool.size = side;
      pool.y = y.tested.data();
      kTestedRows.pool(pool);
      pool.argmax = tested.data();
      kTestedRows.pool(pool);
      pool.y = y.expected.data();
      pool.argmax = expected.data();
      kExpectedRows.pool(pool);
      CHECK(y.tested.same_bits(y.expected));
      CHECK(tested == expected);

      for (Index r = 0; r < side; ++r) {
        Results back(row);
        engine::UnpoolRow<float> unpool;
        unpool.from.gradient = y.expected.data();
        unpool.from.gradient_step = channels;
        unpool.from.argmax = expected.data();
        unpool.from.argmax_step = channels;
        unpool.from.windows = windows;
        unpool.from.cols = side;
        unpool.from.channels = channels;
        unpool.from.first = r * side;
        unpool.x_step = step;
        unpool.x_window = stride * step;
        const auto back_through = [&](const engine::RowKernels<float>& kernels, Numbers& to) {
          unpool.x = to.data();
          if (stride >= side) {
            kernels.unpool(unpool);
          }
          kernels.add_unpooled(unpool);
        };
        back_through(kTestedRows, back.tested);
        back_through(kExpectedRows, back.expected);
        CHECK(back.tested.same_bits(back.expected));
      }
    });
  }
}

TEST_CASE("gradients that a max-pool sends have the same sums in order") {
  const engine::BlockNorms<float> norms = norms_of(1);
  for (const auto activation : kActivations) {
    CAPTURE(static_cast<int>(activation));
    for (const Index cols : {2, 3}) {
      for_each_row([&](Index channels, Index step, Index windows) {
        Numbers gradient(windows * channels, 1);
        Numbers x(row_size(channels, step, windows * cols), 2);
        std::vector<engine::ArgmaxOffset> argmax;
        for (Index i = 0; i < windows * channels; ++i) {
          argmax.push_back(static_cast<engine::ArgmaxOffset>(i * 7 % (2 * cols)));
        }
        engine::PooledGradientRow<float> row;
        row.from.gradient = gradient.data();
        row.from.gradient_step = channels;
        row.from.argmax = argmax.data();
        row.from.argmax_step = channels;
        row.from.windows = windows;
        row.from.cols = cols;
        row.from.channels = channels;
        row.from.first = cols;
        row.x = x.data();
        row.x_step = step;
        row.norms = &norms;
        row.activation = activation;
        Sums tested;
        Sums expected;
        kTestedRows.pooled_gradient_statistics(row, tested.first.data(), tested.second.data());
        kExpectedRows.pooled_gradient_statistics(
            row, expected.first.data(), expected.second.data());
        CHECK(tested.same_bits(expected));
      });
    }
  }
}

#endif

}  // namespace

#endif
