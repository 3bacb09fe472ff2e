#include "engine/session/trunk_figures.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "partitioner/base/quantities.h"
#include "partitioner/cost/simulation.h"
#include "partitioner/network/frozen_trunk.h"
#include "partitioner/plan/trunk_homes.h"
#include "partitioner/search/explained_plan.h"
#include "partitioner/text/plan_words.h"

namespace tessera::engine {

std::optional<TrunkSteps> predicted_trunk_steps(const PartitionRequest& request,
                                                const partitioner::Network& network,
                                                const Workload& workload,
                                                const partitioner::Partition& partition,
                                                const partitioner::Plan& plan,
                                                const partitioner::ClusterProfile& cluster) {
  if (frozen_trunk(network).empty() || !is_simulable(network, cluster.size())) {
    return std::nullopt;
  }
  partitioner::CostOptions cost = prediction_options(network, request, workload, partition).cost;
  const auto step_s = [&](bool given) {
    cost.trunk_given = given;
    return simulate(priced_step(network, plan, cluster, cost), cluster).step_s;
  };
  return TrunkSteps{step_s(false), step_s(true)};
}

std::vector<Index> trunk_bytes_of_ranks(const partitioner::Network& network,
                                        const partitioner::Plan& plan,
                                        Index images,
                                        Index passes) {
  const partitioner::TrunkHomes homes = trunk_homes(network, plan);
  std::vector<Index> bytes;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    Index of_pass = 0;
    Index most = 0;
    for (const int home : homes.of_image) {
      const Index values = kept_values(homes.homes[static_cast<std::size_t>(home)], rank);
      of_pass += values;
      most = std::max(most, values);
    }
    const Index whole_passes = images / plan.batch + passes;
    const Index rest = std::min(images % plan.batch * most, of_pass);
    bytes.push_back((whole_passes * of_pass + rest) * static_cast<Index>(sizeof(float)));
  }
  return bytes;
}

std::optional<TrunkFigures> trunk_figures(const PartitionRequest& request,
                                          const partitioner::Network& network,
                                          const Workload& workload,
                                          const partitioner::Partition& partition,
                                          const partitioner::Plan& plan,
                                          const std::optional<partitioner::ClusterProfile>& cluster,
                                          Index pictures,
                                          Index variants) {
  const partitioner::FrozenTrunk trunk = frozen_trunk(network);
  if (trunk.empty()) {
    return std::nullopt;
  }
  TrunkFigures figures{.last = trunk.last, .obstacle = trunk_obstacle(network, plan)};
  if (figures.obstacle) {
    return figures;
  }
  figures.pictures = pictures;
  figures.variants = std::max<Index>(variants, 1);
  figures.bytes =
      trunk_bytes_of_ranks(network, plan, std::max<Index>(pictures, 1) * figures.variants, 0);
  if (cluster) {
    figures.steps = predicted_trunk_steps(request, network, workload, partition, plan, *cluster);
  }
  return figures;
}

std::string trunk_line(const TrunkFigures& figures) {
  const std::string layers = partitioner::named_layers(0, figures.last);
  if (figures.obstacle) {
    return fmt::format("maps of {} cannot be kept: {}\n", layers, *figures.obstacle);
  }
  return fmt::format(
      "maps of {} kept (train --augment-variants {}): {} for {} on one rank at most{}\n",
      layers,
      figures.variants,
      readable_bytes(*std::max_element(figures.bytes.begin(), figures.bytes.end())),
      figures.pictures == 0 ? "a picture" : counted(figures.pictures, "picture"),
      figures.steps ? fmt::format("; a step is then about {} times as fast, {} instead of {} "
                                  "(predicted)",
                                  two_digits(figures.steps->times()),
                                  predicted_seconds(figures.steps->given_s),
                                  predicted_seconds(figures.steps->computed_s))
                    : "");
}

std::string trunk_json(const TrunkFigures& figures) {
  nlohmann::ordered_json json{{"last_layer", figures.last}};
  if (figures.obstacle) {
    json["obstacle"] = *figures.obstacle;
    return json.dump(-1, ' ', true);
  }
  json["pictures"] = std::max<Index>(figures.pictures, 1);
  json["variants"] = figures.variants;
  json["bytes"] = figures.bytes;
  if (figures.steps) {
    json["step_s"] = figures.steps->computed_s;
    json["given_step_s"] = figures.steps->given_s;
    json["times"] = figures.steps->times();
  }
  return json.dump(-1, ' ', true);
}

}  // namespace tessera::engine
