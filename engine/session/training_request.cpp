#include "engine/session/training_request.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/files/json_text.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"

// Null is nothing.
template <class T>
struct nlohmann::adl_serializer<std::optional<T>> {
  static void to_json(json& value, const std::optional<T>& given) {
    value = given ? json(*given) : json();
  }
  static void from_json(const json& value, std::optional<T>& given) {
    given = value.is_null() ? std::nullopt : std::optional(value.get<T>());
  }
};

namespace tessera {

namespace {

template <class T>
T expect_known(const std::optional<T>& named) {
  return named ? *named : throw InputError("a request has a word that means nothing");
}

}  // namespace

namespace partitioner {

NLOHMANN_JSON_SERIALIZE_ENUM(KernelRule,
                             {{KernelRule::Direct, "direct"},
                              {KernelRule::Winograd, "winograd"},
                              {KernelRule::Reference, "reference"},
                              {KernelRule::Usual, "usual"}})

void to_json(nlohmann::json& value, const Objective& objective) {
  value = name_of(objective);
}

void from_json(const nlohmann::json& value, Objective& objective) {
  objective = expect_known(objective_named(value.get<std::string>()));
}

void to_json(nlohmann::json& value, const Compression& compression) {
  value = to_text(compression);
}

void from_json(const nlohmann::json& value, Compression& compression) {
  compression = expect_known(compression_named(value.get<std::string>()));
}

void to_json(nlohmann::json& value, const Synchronisation& sync) {
  value = to_text(sync);
}

void from_json(const nlohmann::json& value, Synchronisation& sync) {
  sync = parse_synchronisation(value.get<std::string>());
}

void to_json(nlohmann::json& value, const Reader& reader) {
  const auto rank = reader.single_rank();
  value = rank ? std::to_string(*rank) : "every";
}

void from_json(const nlohmann::json& value, Reader& reader) {
  reader = parse_reader(value.get<std::string>());
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(CutRequest,
                                                grid,
                                                groups,
                                                recompute,
                                                recompute_all,
                                                data_parallel_from,
                                                filter_parallel_from,
                                                replicas,
                                                sync)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(PartitionRequest,
                                                automatic,
                                                file,
                                                found,
                                                cluster,
                                                memory_limit_bytes,
                                                objective,
                                                cut,
                                                reader,
                                                kernels,
                                                default_kernels,
                                                workspace_bytes,
                                                gradient_precision)

}  // namespace partitioner

namespace engine {

NLOHMANN_JSON_SERIALIZE_ENUM(BatchNormMode,
                             {{BatchNormMode::Sync, "sync"},
                              {BatchNormMode::Frozen, "frozen"},
                              {BatchNormMode::PerTile, "per-tile"}})
NLOHMANN_JSON_SERIALIZE_ENUM(PictureCacheRequest::Place,
                             {{PictureCacheRequest::Place::Automatic, "automatic"},
                              {PictureCacheRequest::Place::Memory, "memory"},
                              {PictureCacheRequest::Place::Folder, "folder"},
                              {PictureCacheRequest::Place::Off, "off"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(PictureCacheRequest, place, folder)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(
    DeviceRequest, objective, deadline_s, power_limit_w, count_idle, try_all)

void to_json(nlohmann::json& value, const MeterSpec& spec) {
  value = to_text(spec);
}

void from_json(const nlohmann::json& value, MeterSpec& spec) {
  spec = parse_meter(value.get<std::string>());
}

namespace {

// Calls take(name, field) for each field, in their order.
template <class Request, class Take>
void for_each_field(Request& request, const Take& take) {
  take("model", request.model);
  take("data", request.data);
  take("data_map", request.data_map);
  take("run", request.run);
  take("partition", request.partition);
  take("devices", request.devices);
  take("steps", request.steps);
  take("epochs", request.epochs);
  take("batch", request.batch);
  take("subdivisions", request.subdivisions);
  take("schedule_steps", request.schedule_steps);
  take("freeze", request.freeze);
  take("multi_scale", request.multi_scale);
  take("augment_variants", request.augment_variants);
  take("patience", request.patience);
  take("seed", request.seed);
  take("resume", request.resume);
  take("weights", request.weights);
  take("batch_norm", request.batch_norm);
  take("local_after", request.local_after);
  take("mean", request.mean);
  take("stddev", request.stddev);
  take("checkpoint_every", request.checkpoint_every);
  take("replace", request.replace);
  take("evaluate", request.evaluate);
  take("skip_broken", request.skip_broken);
  take("allow_unlabelled", request.allow_unlabelled);
  take("cache", request.cache);
  take("trunk_cache", request.trunk_cache);
  take("rebalance_window_s", request.rebalance_window_s);
  take("monitor", request.monitor);
  take("meters", request.meters);
}

}  // namespace

void to_json(nlohmann::json& object, const TrainingRequest& request) {
  object = nlohmann::json::object();
  for_each_field(request, [&](const char* name, const auto& field) { object[name] = field; });
}

void from_json(const nlohmann::json& object, TrainingRequest& request) {
  request = {};
  for_each_field(request, [&](const char* name, auto& field) {
    field = object.value(name, std::move(field));
  });
}

std::string text_of(const TrainingRequest& request) {
  return nlohmann::json(request).dump(1) + "\n";
}

TrainingRequest read_training_request(const std::filesystem::path& file) {
  try {
    return nlohmann::json::parse(read_json_text(file).value_or("")).get<TrainingRequest>();
  } catch (const nlohmann::json::exception&) {
    throw InputError(printable(file.string()) + ": is no request of a training run");
  }
}

TrainingRequest for_other_devices(TrainingRequest request,
                                  const std::string& found,
                                  const std::string& cluster) {
  PartitionRequest& partition = request.partition;
  partition.automatic = true;
  partition.file.clear();
  partition.found = found;
  partition.cluster = cluster;
  partition.cut = {};
  if (partition.reader && partition.reader->single_rank().value_or(0) != 0) {
    partition.reader.reset();
  }
  request.local_after = 0;
  request.devices.reset();
  return request;
}

}  // namespace engine

}  // namespace tessera
