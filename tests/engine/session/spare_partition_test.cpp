#include "engine/session/spare_partition.h"

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/session/model_setup.h"
#include "engine/session/planning.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

constexpr const char* kModel =
    "[net]\nwidth=16\nheight=16\nchannels=3\nbatch=12\nsubdivisions=2\n"
    "[convolutional]\nfilters=8\nsize=3\nstride=1\npad=1\nactivation=leaky\n"
    "[maxpool]\nsize=2\nstride=2\n"
    "[connected]\noutput=10\nactivation=linear\n"
    "[softmax]\n";

TEST_CASE("a spare partition is searched for what the ranks will run") {
  const tests::TemporaryFolder folder;
  tests::put_bytes(folder / "net.cfg", kModel);
  engine::TrainingRequest request{.model = folder / "net.cfg"};
  request.partition.gradient_precision = partitioner::compression_named("topk:0.1");
  request.partition.reader = partitioner::Reader::rank(0);
  request.partition.kernels = partitioner::KernelRule::Direct;
  const std::vector<std::string> devices{"pi1", "pi2", "pi2"};
  const auto asked = for_other_devices(request, "", "");
  const partitioner::Partition found = spare_partition(asked, devices);
  CHECK(to_text(found.gradient_reduction.compression) == "topk:0.1");
  CHECK(found.reader == partitioner::Reader::rank(0));
  const auto model = engine::load_model(request.model, engine::Communicator::self(), {});
  CHECK(found == engine::search_automatically(model.network,
                                              engine::described_cluster(asked.partition, 3, {}),
                                              asked.partition,
                                              {.model = request.model,
                                               .batch = 6,
                                               .passes = 2,
                                               .kept = {.is_on = true, .devices = devices}}));
}

TEST_CASE("a search that was made is not made again, also where it had limits") {
  const tests::TemporaryFolder folder;
  tests::put_bytes(folder / "net.cfg", kModel);
  engine::TrainingRequest request{.model = folder / "net.cfg"};
  request.partition.memory_limit_bytes = Index{1} << 30U;
  request.partition.objective = partitioner::Objective::Memory;
  const auto found = spare_partition(for_other_devices(request, "", ""), {"pi1"});
  tests::put_bytes(folder / "found.toml", to_text(found));
  const auto asked = for_other_devices(request, folder / "found.toml", "no profile is read");
  const auto model = engine::load_model(request.model, engine::Communicator::self(), {});
  CHECK(engine::agreed_partition(model.network,
                                 asked.partition,
                                 {.model = request.model, .batch = 6},
                                 engine::Communicator::self(),
                                 {}) == found);
}

}  // namespace
