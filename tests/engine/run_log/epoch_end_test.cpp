#include "engine/run_log/epoch_end.h"

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

engine::BestSoFar test_after(Index step, double accuracy) {
  return {step, {{"accuracy", accuracy}, 0.1}};
}

TEST_CASE("the best test is that of the best weights, or of those that they have replaced") {
  const auto best = [](const auto& logged, const auto& saved) {
    const auto found = engine::best_by_files(logged, saved, 8);
    return found ? found->step : 0;
  };
  const std::optional<engine::BestSoFar> none;
  const std::optional logged = test_after(6, 0.8);
  CHECK(best(none, none) == 0);
  CHECK(best(logged, std::optional(test_after(6, 0.8))) == 6);
  CHECK(best(logged, std::optional(test_after(9, 0.9))) == 6);  // step 9 comes again
  CHECK(best(none, std::optional(test_after(9, 0.9))) == 0);
  CHECK(best(none, std::optional(test_after(7, 0.9))) == 7);  // lines were lost
  CHECK(best(logged, std::optional(test_after(7, 0.9))) == 7);
  CHECK(best(logged, std::optional(test_after(4, 0.7))) == 4);  // weights were lost
  CHECK(best(logged, none) == 0);
}

partitioner::Network small_classifier() {
  partitioner::Network network;
  network.image = {1, 2, 2};
  add_layer(network, partitioner::Connected{.outputs = 2}, {partitioner::kImage});
  add_layer(network, partitioner::Softmax{}, {0});
  return network;
}

TEST_CASE("an epoch is over when its row is there and, with a test, all that the test leaves") {
  const tests::TemporaryFolder folder;
  const auto ends = [&](bool tests) {
    return engine::has_epoch_end(folder.path(), small_classifier(), 4, tests);
  };
  CHECK_FALSE(ends(false));
  tests::put_bytes(folder / "epochs.csv", "epoch,step,loss\n1,2,3\n");
  CHECK_FALSE(ends(false));
  tests::put_bytes(folder / "epochs.csv", "epoch,step,loss\n1,2,3\n2,4,3\n");
  CHECK(ends(false));
  CHECK_FALSE(ends(true));
  tests::put_bytes(folder / "metrics.jsonl",
                   R"({"step":2,"accuracy":0.6,"test_loss":0.3})"
                   "\n"
                   R"({"step":4,"accuracy":0.5,"test_loss":0.3})"
                   "\n");
  CHECK_FALSE(ends(true));
  tests::put_bytes(folder / "events.jsonl",
                   R"({"step":4,"kind":"epoch","text":"epoch 2"})"
                   "\n");
  CHECK(ends(true));  // another test was the best
  tests::put_bytes(folder / "metrics.jsonl",
                   R"({"step":2,"accuracy":0.4,"test_loss":0.3})"
                   "\n"
                   R"({"step":4,"accuracy":0.5,"test_loss":0.3})"
                   "\n");
  CHECK_FALSE(ends(true));  // its weights are not there
}

}  // namespace
