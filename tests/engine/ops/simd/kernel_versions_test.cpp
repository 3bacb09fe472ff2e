// That the versions of the inner loops for one width of vectors compute the same bits, and read
// nothing beyond what they are given: on other processors than ARM's there is only one.
#include <algorithm>
#include <cstring>
#include <random>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

#include "engine/ops/simd/block_kernel_versions.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

#if defined(__aarch64__)

namespace {

using engine::BlockKernels;
using engine::kBlockChannels;
using engine::kNarrowChannels;
using tessera::Index;

const BlockKernels<float>& kTested = engine::cortex_a53::kSingle;
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

}  // namespace

#endif
