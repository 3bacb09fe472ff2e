#include "partitioner/plan/kept_parts.h"

#include <algorithm>
#include <string>
#include <utility>

namespace tessera::partitioner {

namespace {

std::vector<ArrayKind> kinds_of(const ParameterPlan& parameter, const TrainedArrays& trained) {
  std::vector<ArrayKind> kinds{ArrayKind::Values};
  if (is_learnt(parameter)) {
    kinds.push_back(ArrayKind::First);
  }
  if (is_learnt(parameter) && trained.adam) {
    kinds.push_back(ArrayKind::Second);
  }
  if (trained.averages && !parameter.frozen) {
    kinds.push_back(ArrayKind::Average);
  }
  return kinds;
}

}  // namespace

std::vector<ArrayName> arrays_of(const Plan& plan, const TrainedArrays& trained) {
  std::vector<ArrayName> arrays;
  for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
    for (const ArrayKind kind : kinds_of(plan.parameters[i], trained)) {
      arrays.push_back({static_cast<int>(i), kind, 0});
    }
  }
  return arrays;
}

std::vector<KeptPart> owned_parts(const Plan& plan,
                                  const TrainedArrays& trained,
                                  int rank,
                                  Index own) {
  std::vector<KeptPart> parts;
  for (ArrayName array : arrays_of(plan, trained)) {
    array.copy = plan.copy_of(rank);
    const auto& owned = plan.parameters[static_cast<std::size_t>(array.tensor)].owned;
    for (const Range& run : owned[static_cast<std::size_t>(rank)]) {
      parts.push_back({array, run});
    }
  }
  if (own > 0) {
    parts.push_back({{rank, ArrayKind::OfRank, 0}, {0, own}});
  }
  return parts;
}

std::vector<int> keepers(const std::vector<std::string>& devices) {
  std::vector<std::vector<int>> ranks_of_device;
  std::vector<std::string> names;
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    if (devices[rank].empty()) {
      continue;
    }
    const auto known = std::find(names.begin(), names.end(), devices[rank]);
    const auto device = static_cast<std::size_t>(known - names.begin());
    if (known == names.end()) {
      names.push_back(devices[rank]);
      ranks_of_device.emplace_back();
    }
    ranks_of_device[device].push_back(static_cast<int>(rank));
  }
  std::vector<int> keeper(devices.size(), -1);
  for (std::size_t device = 0; device < names.size() && names.size() > 1; ++device) {
    const std::vector<int>& next = ranks_of_device[(device + 1) % names.size()];
    for (std::size_t i = 0; i < ranks_of_device[device].size(); ++i) {
      keeper[static_cast<std::size_t>(ranks_of_device[device][i])] = next[i % next.size()];
    }
  }
  return keeper;
}

bool is_gathered_by(const Plan& plan, const KeptPart& part, int rank) {
  if (part.array.kind == ArrayKind::OfRank || part.array.copy != plan.copy_of(rank)) {
    return false;
  }
  const auto& parameter = plan.parameters[static_cast<std::size_t>(part.array.tensor)];
  if (part.array.kind != ArrayKind::Values) {
    const auto& updated = parameter.updated[static_cast<std::size_t>(rank)];
    return std::any_of(updated.begin(), updated.end(), [&](const Range& run) {
      return contains(run, part.elements);
    });
  }
  const Range& channels = parameter.required[static_cast<std::size_t>(rank)];
  return !is_running_statistic(parameter) &&
         contains({channels.begin * parameter.shape.row, channels.end * parameter.shape.row},
                  part.elements);
}

SecondPlaces::SecondPlaces(const Plan& plan, std::vector<std::string> devices)
    : plan_(plan), devices_(std::move(devices)), keepers_(keepers(devices_)) {}

int SecondPlaces::keeper(int owner, const KeptPart& part) const {
  const auto ranks = static_cast<int>(devices_.size());
  const std::string& device = devices_[static_cast<std::size_t>(owner)];
  for (int i = 1; i < ranks; ++i) {
    const int rank = (owner + i) % ranks;
    const std::string& other = devices_[static_cast<std::size_t>(rank)];
    if (!other.empty() && other != device && is_gathered_by(plan_, part, rank)) {
      return rank;
    }
  }
  return keepers_[static_cast<std::size_t>(owner)];
}

namespace {

// Calls visit(owner, part, keeper, whether it is sent there) for each part that is kept; a keeper
// of -1: there is none.
template <class Visit>
void for_each_kept_part(const Plan& plan,
                        const TrainedArrays& trained,
                        const StateKeeping& keeping,
                        Visit visit) {
  if (!keeping.is_on || plan.replicas.run_ahead()) {
    return;
  }
  std::vector<std::vector<KeptPart>> parts;  // [rank]
  std::vector<std::string> devices;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    parts.push_back(owned_parts(plan, trained, rank, 0));
    devices.push_back(parts.back().empty()      ? ""
                      : keeping.devices.empty() ? std::to_string(rank)
                                                : keeping.devices[static_cast<std::size_t>(rank)]);
  }
  const SecondPlaces places(plan, std::move(devices));
  for (int rank = 0; rank < plan.ranks; ++rank) {
    for (const KeptPart& part : parts[static_cast<std::size_t>(rank)]) {
      const int keeper = places.keeper(rank, part);
      visit(rank, part, keeper, keeper >= 0 && !is_gathered_by(plan, part, keeper));
    }
  }
}

}  // namespace

std::vector<SecondCopy> second_copies(const Plan& plan,
                                      const TrainedArrays& trained,
                                      const StateKeeping& keeping) {
  std::vector<SecondCopy> copies;
  for_each_kept_part(
      plan, trained, keeping, [&](int owner, const KeptPart& part, int keeper, bool is_sent) {
        if (!is_sent || part.elements.empty()) {
          return;
        }
        if (copies.empty() || copies.back().from != owner) {
          copies.push_back({owner, keeper, 0});  // all that is not anywhere else goes to that one
        }
        copies.back().elements += part.elements.size();
      });
  return copies;
}

std::vector<Index> kept_bytes_of_ranks(const Plan& plan,
                                       const TrainedArrays& trained,
                                       const StateKeeping& keeping,
                                       Index scalar_bytes) {
  constexpr Index kSteps = 2;
  std::vector<Index> bytes(static_cast<std::size_t>(plan.ranks));
  for_each_kept_part(
      plan, trained, keeping, [&](int owner, const KeptPart& part, int keeper, bool is_sent) {
        const Index once = part.elements.size() * scalar_bytes;
        bytes[static_cast<std::size_t>(owner)] += (kSteps + (is_sent ? 1 : 0)) * once;
        if (keeper >= 0) {
          bytes[static_cast<std::size_t>(keeper)] += kSteps * once;
        }
      });
  return bytes;
}

}  // namespace tessera::partitioner
