#include "partitioner/plan/sized_plan.h"

#include <algorithm>
#include <fmt/format.h>
#include <stdexcept>

#include "partitioner/base/errors.h"
#include "partitioner/partition/scaled_partition.h"

namespace tessera::partitioner {

namespace {

Network network_of_size(const Network& network, const InputSize& size) {
  try {
    return with_input_of_same_parameters(network, size);
  } catch (const std::invalid_argument& error) {
    throw InputError(fmt::format("{}: {}", to_text(size), error.what()));
  }
}

}  // namespace

SizedPlan sized_plan(const Network& network,
                     const Partition& partition,
                     Index batch,
                     const InputSize& size) {
  SizedPlan sized{network_of_size(network, size), {}, {}};
  sized.partition = scaled(partition, network, sized.network);
  validate(sized.partition, sized.network, batch, to_text(size));
  sized.plan = make_plan(sized.network, sized.partition, batch);
  return sized;
}

bool may_take_turns(const Plan& plan, const Plan& other) {
  const auto same_parameter = [](const ParameterPlan& a, const ParameterPlan& b) {
    return a.layer == b.layer && a.kind == b.kind && a.required == b.required &&
           a.owned == b.owned && a.messages == b.messages;
  };
  const auto same_bucket = [](const BucketPlan& a, const BucketPlan& b) {
    return a.parameters == b.parameters;
  };
  return plan.batch == other.batch && plan.ranks == other.ranks && plan.targets == other.targets &&
         std::equal(plan.parameters.begin(),
                    plan.parameters.end(),
                    other.parameters.begin(),
                    other.parameters.end(),
                    same_parameter) &&
         std::equal(plan.buckets.begin(),
                    plan.buckets.end(),
                    other.buckets.begin(),
                    other.buckets.end(),
                    same_bucket);
}

}  // namespace tessera::partitioner
