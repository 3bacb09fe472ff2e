#include "engine/session/training_request.h"

#include <nlohmann/json.hpp>
#include <tuple>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "partitioner/base/errors.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::TrainingRequest;
using nlohmann::json;

// Each field of a request, and none as it is by default.
constexpr const char* kAllFields = R"({
  "model": "my model's.cfg", "data": "pictures", "data_map": "map.toml", "run": "a\nb", "steps": 7, "epochs": 8, "batch": 9,
  "subdivisions": 3, "schedule_steps": 70, "freeze": "weights", "multi_scale": 0.0, "augment_variants": 12, "patience": 4, "seed": 18446744073709551615,
  "resume": "checkpoint.safetensors", "weights": "yolo.weights", "batch_norm": "per-tile", "local_after": 5, "mean": [0.5, 0.25],
  "stddev": [2.0], "checkpoint_every": 11, "replace": true, "evaluate": false, "skip_broken": true, "allow_unlabelled": true,
  "cache": {"place": "folder", "folder": "cache"}, "trunk_cache": {"place": "folder", "folder": "maps"}, "rebalance_window_s": 0.1, "monitor": false,
  "meters": ["cluster=shelly:http://10.0.0.7"],
  "devices": {"objective": "power", "deadline_s": 0.1, "power_limit_w": 12.5, "count_idle": true, "try_all": true},
  "partition": {"automatic": true, "file": "partition.toml", "found": "found.toml", "cluster": "cluster.toml",
    "memory_limit_bytes": 12884901888, "objective": "edp", "reader": "1", "kernels": "winograd",
    "default_kernels": "direct", "workspace_bytes": 0, "gradient_precision": "topk:0.1", "cut":
      {"grid": [2, 3], "groups": [[0, 3], [4, 7]], "recompute": [[0, 3]], "recompute_all": true, "data_parallel_from": 5,
       "filter_parallel_from": 0, "replicas": 2, "sync": "local:8"}}
})";

// A field that is added to the struct does not compile here until it is named, and is to be above,
// too.
std::size_t fields_of(const TrainingRequest& request) {
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
               dd,
               ee,
               ff] = request;
  const auto all = std::tie(a,
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
                            dd,
                            ee,
                            ff);
  return std::tuple_size_v<decltype(all)>;
}

std::size_t fields_of(const engine::PartitionRequest& request) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l] = request;
  return std::tuple_size_v<decltype(std::tie(a, b, c, d, e, f, g, h, i, j, k, l))>;
}

std::size_t fields_of(const partitioner::CutRequest& request) {
  const auto& [a, b, c, d, e, f, g, h] = request;
  return std::tuple_size_v<decltype(std::tie(a, b, c, d, e, f, g, h))>;
}

TEST_CASE("the text of a request has all its fields, and is read as it was written") {
  const json all = json::parse(kAllFields);
  const auto request = all.get<TrainingRequest>();
  CHECK(json(request) == all);
  CHECK(all.size() == fields_of(request));
  CHECK(all["partition"].size() == fields_of(request.partition));
  CHECK(all["partition"]["cut"].size() == fields_of(request.partition.cut));
  const json usual = TrainingRequest{.devices = engine::DeviceRequest()};
  for (const char* name_of_part : {"", "/partition", "/partition/cut", "/devices", "/cache"}) {
    const json::json_pointer where(name_of_part);
    CHECK(all[where].size() == usual[where].size());
    for (const auto& [name, value] : all[where].items()) {
      CAPTURE(name);
      CHECK(value != usual[where].at(name));
    }
  }
  const tests::TemporaryFolder folder;
  tests::put_bytes(folder / "request.json", text_of(request));
  CHECK(engine::read_training_request(folder / "request.json") == request);
}

TEST_CASE("what the text of a request lacks has its default, and what means nothing is refused") {
  CHECK(json::object().get<TrainingRequest>() == TrainingRequest());
  CHECK(json(TrainingRequest()).get<TrainingRequest>() == TrainingRequest());
  const tests::TemporaryFolder folder;
  for (const char* text :
       {"", "[]", R"({"steps": "many"})", R"({"partition": {"objective": "beauty"}})"}) {
    CAPTURE(text);
    tests::put_bytes(folder / "request.json", text);
    CHECK_THROWS_AS((void)engine::read_training_request(folder / "request.json"), InputError);
  }
}

TEST_CASE("for other devices what was cut for those of before is searched anew") {
  json request = json::parse(kAllFields);
  json expected = request;
  expected.merge_patch(json::parse(
      R"({"local_after": 0, "partition": {"file": "", "found": "q.toml", "cluster": "left.toml"}})"));
  expected["devices"] = expected["partition"]["reader"] = nullptr;
  expected["partition"]["cut"] = json(TrainingRequest())["partition"]["cut"];
  CHECK(json(for_other_devices(request.get<TrainingRequest>(), "q.toml", "left.toml")) == expected);
  request["partition"]["reader"] = expected["partition"]["reader"] = "0";
  CHECK(json(for_other_devices(request.get<TrainingRequest>(), "q.toml", "left.toml")) == expected);
}

}  // namespace
