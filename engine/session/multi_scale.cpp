#include "engine/session/multi_scale.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "partitioner/base/errors.h"
#include "partitioner/base/quantities.h"
#include "partitioner/network/losses.h"
#include "partitioner/search/explained_plan.h"

namespace tessera::engine {

using partitioner::InputSizes;
using partitioner::Network;
using partitioner::Partition;

namespace {

constexpr const char* kRemedy = "give --multi-scale off";

InputSizes sizes_of(const partitioner::ModelFile& model, const Network& network, double factor) {
  if (std::holds_alternative<partitioner::Crop>(network.layer(0).operation)) {
    throw std::invalid_argument("its input is cut out by [crop], whose size is fixed");
  }
  const Index step = model.augmentation.resize_step;
  const InputSizes sizes(size_of(network.image), factor, step > 0 ? step : total_stride(network));
  for (const InputSizes::Share& share : sizes.shares()) {
    try {
      (void)with_input_of_same_parameters(network, share.size);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("{}: {}", to_text(share.size), error.what()));
    }
  }
  return sizes;
}

}  // namespace

std::optional<InputSizes> input_sizes(const partitioner::ModelFile& model,
                                      const Network& network,
                                      const std::optional<double>& asked,
                                      const std::string& file) {
  const double factor = asked.value_or(model.augmentation.random);
  if (factor == 0) {
    return std::nullopt;
  }
  if (!is_detector(network)) {
    throw InputError(file, 0, "--multi-scale is for detectors: the network has no head for boxes");
  }
  try {
    return sizes_of(model, network, factor);
  } catch (const std::invalid_argument& error) {
    throw InputError(
        file,
        0,
        fmt::format("multi-scale training ({}) is not possible: {}: {}",
                    asked ? fmt::format("--multi-scale {}", factor) : "random in a head",
                    error.what(),
                    asked ? kRemedy : "remove random, or give --multi-scale off"));
  }
}

void expect_plans(const Network& network,
                  const Partition& partition,
                  Index batch,
                  const InputSizes& sizes,
                  const std::string& file) {
  const partitioner::Plan configured = make_plan(network, partition, batch);
  for (const InputSizes::Share& share : sizes.shares()) {
    const std::string where = fmt::format("{}: multi-scale training at ", file);
    std::optional<partitioner::SizedPlan> sized;
    try {
      sized = sized_plan(network, partition, batch, share.size);
    } catch (const InputError& error) {
      throw InputError(where + error.what() + ": " + kRemedy);
    }
    if (!may_take_turns(configured, sized->plan)) {
      throw InputError(fmt::format(
          "{}{}: not the same tiles are empty there as at {}: cut the network into fewer tiles, or "
          "{}",
          where,
          to_text(share.size),
          to_text(partitioner::size_of(network.image)),
          kRemedy));
    }
  }
}

std::string at_largest(const std::string& problem, const InputSizes& sizes) {
  return fmt::format(
      "{}. This is with inputs of {}, the largest of multi-scale training: "
      "--multi-scale FACTOR, or off, needs less memory",
      problem,
      to_text(sizes.largest()));
}

double mean_step_seconds(const Network& network,
                         const partitioner::ClusterProfile& cluster,
                         const PartitionRequest& request,
                         const Workload& workload,
                         const Partition& partition,
                         const InputSizes& sizes) {
  double mean_s = 0;
  for (const InputSizes::Share& share : sizes.shares()) {
    if (share.probability > 0) {
      const Network sized = with_input(network, share.size);
      const Partition there = scaled(partition, network, sized);
      mean_s +=
          share.probability *
          time_shares(sized, cluster, prediction_options(sized, request, workload, there), there)
              .step_s();
    }
  }
  return mean_s;
}

namespace {

std::size_t heaviest_rank(const std::vector<partitioner::MemoryUse>& memory) {
  const auto most =
      std::max_element(memory.begin(), memory.end(), [](const auto& a, const auto& b) {
        return a.total() < b.total();
      });
  return static_cast<std::size_t>(most - memory.begin());
}

}  // namespace

std::string multi_scale_line(const InputSizes& sizes, const MultiScaleFigures& figures) {
  const std::size_t rank = heaviest_rank(figures.memory);
  const std::string mean = figures.mean_step_s
                               ? fmt::format(", about {} for a step on average (predicted)",
                                             predicted_seconds(*figures.mean_step_s))
                               : "";
  return fmt::format(
      "multi-scale: inputs from {} to {} ({}), another one every {} steps; up to {} of memory on "
      "rank {}{}\n",
      to_text(sizes.smallest()),
      to_text(sizes.largest()),
      counted(std::ssize(sizes.shares()), "size"),
      InputSchedule::kStepsOfSize,
      readable_bytes(figures.memory[rank].total()),
      rank,
      mean);
}

std::string multi_scale_json(const InputSizes& sizes, const MultiScaleFigures& figures) {
  nlohmann::ordered_json json{{"factor", sizes.factor()}};
  for (const InputSizes::Share& share : sizes.shares()) {
    json["sizes"].push_back(to_text(share.size));
  }
  for (const partitioner::MemoryUse& memory : figures.memory) {
    json["memory_bytes"].push_back(memory.total());
  }
  if (figures.mean_step_s) {
    json["mean_step_s"] = *figures.mean_step_s;
  }
  return json.dump();
}

}  // namespace tessera::engine
