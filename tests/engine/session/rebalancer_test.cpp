#include "engine/session/rebalancer.h"

#include <functional>
#include <vector>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::should_rebalance;
using engine::TrainingRequest;

TrainingRequest searched() {
  TrainingRequest request;
  request.partition.automatic = true;
  request.partition.cluster = "hosts.cluster.toml";
  return request;
}

TEST_CASE("a run whose partition a search has found for known devices is to follow their speed") {
  CHECK(should_rebalance(searched(), false));
  TrainingRequest rounded = searched();
  rounded.partition.gradient_precision = partitioner::Compression::Half;
  CHECK(should_rebalance(rounded, false));
  TrainingRequest one_size = searched();
  one_size.multi_scale = 0;
  CHECK(should_rebalance(one_size, true));
  one_size.resume = "checkpoint.safetensors";
  CHECK(should_rebalance(one_size, true));
}

TEST_CASE(
    "a run that train --rebalance would refuse, or that says how to cut, keeps its partition") {
  const std::vector<std::function<void(TrainingRequest&)>> changes{
      [](TrainingRequest& request) { request.partition.automatic = false; },
      [](TrainingRequest& request) { request.partition.cluster.clear(); },
      [](TrainingRequest& request) { request.partition.cut.replicas = 2; },
      [](TrainingRequest& request) {
        request.partition.gradient_precision = partitioner::compression_named("topk:0.01");
      },
      [](TrainingRequest& request) { request.data_map = "map.toml"; },
      [](TrainingRequest& request) { request.devices.emplace(); },
      [](TrainingRequest& request) { request.multi_scale = 1.4; },
      [](TrainingRequest& request) { request.resume = "checkpoint.safetensors"; }};
  for (const auto& change : changes) {
    TrainingRequest request = searched();
    change(request);
    CHECK(!should_rebalance(request, false));
  }
  CHECK(!should_rebalance(searched(), true));
}

}  // namespace
