#include "engine/session/training_request.h"

#include <nlohmann/json.hpp>
#include <tuple>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "partitioner/base/errors.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::PartitionRequest;
using engine::TrainingRequest;
using partitioner::Objective;

// No field has its default.
TrainingRequest request_of_all_fields() {
  return {.model = "my model's.cfg",
          .data = "pictures",
          .data_map = "map.toml",
          .run = "a\nb",
          .partition = {.automatic = true,
                        .file = "partition.toml",
                        .found = "found.toml",
                        .cluster = "cluster.toml",
                        .memory_limit_bytes = Index{3} << 32U,
                        .objective = Objective::EnergyDelay,
                        .grid = std::pair<Index, Index>(2, 3),
                        .groups = {{0, 3}, {4, 7}},
                        .recompute = {{0, 3}},
                        .recompute_all = true,
                        .data_parallel_from = 5,
                        .filter_parallel_from = 0,
                        .reader = partitioner::Reader::rank(1),
                        .kernels = partitioner::KernelRule::Winograd,
                        .default_kernels = partitioner::KernelRule::Direct,
                        .workspace_bytes = 0,
                        .gradient_precision = partitioner::compression_named("topk:0.1"),
                        .replicas = 2,
                        .sync = partitioner::parse_synchronisation("post-local:8")},
          .devices = engine::DeviceRequest{.objective = Objective::Power,
                                           .deadline_s = 0.1,
                                           .power_limit_w = 12.5,
                                           .count_idle = true,
                                           .try_all = true},
          .steps = 7,
          .epochs = 8,
          .batch = 9,
          .subdivisions = 3,
          .schedule_steps = 70,
          .freeze = engine::kFreezeWeights,
          .multi_scale = 0,
          .patience = 4,
          .seed = 0xffffffffffffffff,
          .resume = "checkpoint.safetensors",
          .weights = "yolo.weights",
          .batch_norm = engine::BatchNormMode::PerTile,
          .local_after = 5,
          .mean = {0.1F, 0.2F, 0.3F},
          .stddev = {1e-30F},
          .checkpoint_every = 11,
          .replace = true,
          .evaluate = false,
          .skip_broken = true,
          .allow_unlabelled = true,
          .cache = {engine::PictureCacheRequest::Place::Folder, "cache"},
          .rebalance_window_s = 30,
          .monitor = false,
          .meters = {engine::parse_meter("cluster=shelly:http://10.0.0.7")}};
}

// A field that is added has to be named here, and so is missed where the text form lacks it.
std::size_t fields(const TrainingRequest& request) {
  const auto& [a,
               b,
               c,
               d,
               e,
               f,
               g,
               h,
               i,
               j,
               k,
               l,
               m,
               n,
               o,
               p,
               q,
               r,
               s,
               t,
               u,
               v,
               w,
               x,
               y,
               z,
               aa,
               bb,
               cc,
               dd] = request;
  return std::tuple_size_v<decltype(std::tie(a,
                                             b,
                                             c,
                                             d,
                                             e,
                                             f,
                                             g,
                                             h,
                                             i,
                                             j,
                                             k,
                                             l,
                                             m,
                                             n,
                                             o,
                                             p,
                                             q,
                                             r,
                                             s,
                                             t,
                                             u,
                                             v,
                                             w,
                                             x,
                                             y,
                                             z,
                                             aa,
                                             bb,
                                             cc,
                                             dd))>;
}

std::size_t fields(const PartitionRequest& request) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s] = request;
  return std::tuple_size_v<decltype(std::tie(
      a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s))>;
}

void expect_no_default(const nlohmann::json& all, const nlohmann::json& defaults) {
  for (const auto& [name, value] : all.items()) {
    CAPTURE(name);
    CHECK(value != defaults.at(name));
  }
}

TEST_CASE("the text of a request has all its fields, and is read as it was written") {
  const TrainingRequest request = request_of_all_fields();
  const nlohmann::json object(request);
  const nlohmann::json defaults{TrainingRequest()};
  CHECK(object.size() == fields(request));
  CHECK(object.at("partition").size() == fields(request.partition));
  expect_no_default(object, defaults.at(0));
  expect_no_default(object.at("partition"), defaults.at(0).at("partition"));
  expect_no_default(object.at("devices"),
                    nlohmann::json(TrainingRequest{.devices = engine::DeviceRequest()})["devices"]);
  const tests::TemporaryFolder folder;
  tests::put_bytes(folder / "request.json", text_of(request));
  CHECK(engine::read_training_request(folder / "request.json") == request);
}

TEST_CASE("what the text of a request lacks has its default") {
  CHECK(nlohmann::json::object().get<TrainingRequest>() == TrainingRequest());
  CHECK(nlohmann::json(TrainingRequest()).get<TrainingRequest>() == TrainingRequest());
  CHECK(nlohmann::json::parse(R"({"model": "m.cfg", "partition": {"sync": "gossip"}})")
            .get<TrainingRequest>()
            .partition == PartitionRequest{.sync = partitioner::parse_synchronisation("gossip")});
}

TEST_CASE("a request that is damaged is refused") {
  const tests::TemporaryFolder folder;
  for (const char* text : {"",
                           "[]",
                           R"({"steps": "many"})",
                           R"({"partition": {"gradient_precision": "most"}})",
                           R"({"partition": {"objective": "beauty"}})"}) {
    CAPTURE(text);
    tests::put_bytes(folder / "request.json", text);
    CHECK_THROWS_AS((void)engine::read_training_request(folder / "request.json"), InputError);
  }
}

TEST_CASE("for other devices what was cut for those of before is searched anew") {
  TrainingRequest request = request_of_all_fields();
  TrainingRequest expected = request;
  expected.devices.reset();
  expected.local_after = 0;
  expected.partition = {.automatic = true,
                        .found = "q.toml",
                        .cluster = "left.toml",
                        .memory_limit_bytes = request.partition.memory_limit_bytes,
                        .objective = request.partition.objective,
                        .kernels = request.partition.kernels,
                        .default_kernels = request.partition.default_kernels,
                        .workspace_bytes = request.partition.workspace_bytes,
                        .gradient_precision = request.partition.gradient_precision};
  CHECK(for_other_devices(request, "q.toml", "left.toml") == expected);
  request.partition.reader = expected.partition.reader = partitioner::Reader::rank(0);
  CHECK(for_other_devices(request, "q.toml", "left.toml") == expected);
}

}  // namespace
