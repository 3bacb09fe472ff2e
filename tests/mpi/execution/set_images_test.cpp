// Ranks with as many images each as they happen to have, in double precision.

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/like_one_tile.h"
#include "tests/support/loss_gradients.h"
#include <doctest/doctest.h>

#include "partitioner/plan/image_shares.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::NamedTensors;

constexpr int kImageCases = 60;

struct SharedCase {
  tests::RandomCase random;
  std::vector<Index> images;  // of each rank
};

// A network cut by images alone, of which ranks have fewer than they have room for, or none.
SharedCase shared_case(std::uint64_t seed, int ranks) {
  tests::Draw draw(seed);
  SharedCase result;
  std::vector<Index> most;
  for (int rank = 0; rank < ranks; ++rank) {
    most.push_back(draw.between(rank == 0 ? 1 : 0, 3));
    result.images.push_back(draw.between(0, most.back()));
  }
  result.images[0] = std::max<Index>(result.images[0], 1);
  tests::RandomCase& random = result.random;
  random.batch = std::accumulate(result.images.begin(), result.images.end(), Index{0});
  random.network = tests::random_network(draw, {.batch = random.batch, .most_layers = 7});
  tests::add_losses(draw, random.network);
  random.partition.network = fingerprint(random.network);
  random.partition.ranks = ranks;
  for (int first = 0; first < random.network.size();) {
    const int last =
        std::min(first + static_cast<int>(draw.between(0, 4)), random.network.size() - 1);
    partitioner::Group& group = random.partition.groups.emplace_back();
    group.first = first;
    group.last = last;
    first = last + 1;
  }
  random.partition.gradient_reduction.bucket_bytes = draw.among<Index>({1, 3000, 262144});
  random.partition = with_image_shares(std::move(random.partition), most, "shares");
  tests::draw_recomputation(draw, random.partition);
  tests::draw_kernels(draw, random);
  return result;
}

TEST_CASE("whatever images ranks have, loss and gradients are those of one tile with all of them") {
  const Communicator world = Communicator::world();
  for (int i = 0; i < kImageCases; ++i) {
    const auto seed = static_cast<std::uint64_t>(world.size() * 2000 + i);
    const SharedCase shared = shared_case(seed, world.size());
    const tests::RandomCase& random = shared.random;
    const NamedTensors in = tests::random_tensors(random.network, random.batch, seed);
    const engine::Targets targets =
        tests::some_targets(random.batch, tests::fewest_outputs(random.network));
    const NamedTensors found =
        tests::loss_gradients(random.network, random.partition, in, targets, world, shared.images);
    if (world.rank() == 0) {
      const NamedTensors expected = tests::loss_gradients(random.network,
                                                          partitioner::single_tile(random.network),
                                                          in,
                                                          targets,
                                                          Communicator::self());
      const std::string wrong = tests::differences(found, expected, tests::kTwoOrders);
      CHECK_MESSAGE(wrong.empty(), "seed ", seed, ":\n", wrong, tests::describe(random));
    }
  }
}

}  // namespace
