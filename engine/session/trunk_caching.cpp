#include "engine/session/trunk_caching.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/comm/agreement.h"
#include "engine/session/memory_needs.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"
#include "partitioner/text/plan_words.h"

namespace tessera::engine {

using Place = PictureCacheRequest::Place;

namespace {

// " and makes later steps about 3.2 times as fast"
std::string gain_words(const std::optional<TrunkSteps>& steps, const char* before) {
  return steps ? fmt::format("{} about {:.2g} times as fast", before, steps->times()) : "";
}

}  // namespace

TrunkCaching::TrunkCaching(Choice choice,
                           const partitioner::Network& network,
                           const partitioner::Plan& plan,
                           const Communicator& communicator,
                           const SessionObserver& observer)
    : choice_(std::move(choice)), communicator_(communicator) {
  const bool is_asked_for =
      choice_.request.place == Place::Memory || choice_.request.place == Place::Folder;
  const partitioner::FrozenTrunk trunk = frozen_trunk(network);
  const auto refuse = [&](const std::string& why) {
    described_ = trunk.empty() ? "" : fmt::format("computed for every step, since {}", why);
    if (is_asked_for) {
      observer.warn(fmt::format("--trunk-cache is not used: {}", why), communicator_);
    }
  };
  if (choice_.request.place == Place::Off) {
    described_ = trunk.empty() ? "" : "computed for every step";
    return;
  }
  if (const auto why = why_not(network, plan)) {
    refuse(*why);
    return;
  }
  const auto bytes =
      trunk_bytes_of_ranks(network, plan, choice_.training_images + choice_.testing_images, 0);
  const Index own = bytes[static_cast<std::size_t>(communicator.rank())];
  const Index most = *std::max_element(bytes.begin(), bytes.end());
  const Index of_machine = sum_on_this_machine(own, communicator);
  const bool in_folder = choice_.request.place == Place::Folder;
  if (choice_.request.place == Place::Automatic && !fits_in_memory(own, of_machine)) {
    refuse(
        fmt::format("their maps would take {} of memory on one rank: --trunk-cache FOLDER keeps "
                    "them in files",
                    readable_bytes(most)));
    return;
  }
  if (const auto why = communicator_.agree(in_folder ? lack_of_space(of_machine) : std::nullopt)) {
    refuse(*why);
    return;
  }
  is_on_ = true;
  const auto at_hand = trunk_bytes_of_ranks(network, plan, 0, 2);
  planned_bytes_ = *std::max_element(at_hand.begin(), at_hand.end()) + (in_folder ? 0 : most);
  described_ =
      fmt::format("computed once for each picture{} and kept in {}: {} on one rank at most",
                  choice_.variants > 1 ? fmt::format(", in {} variants,", choice_.variants) : "",
                  in_folder ? printable(choice_.request.folder.string()) : "memory",
                  readable_bytes(most));
}

std::optional<std::string> TrunkCaching::why_not(const partitioner::Network& network,
                                                 const partitioner::Plan& plan) const {
  if (choice_.obstacle) {
    return choice_.obstacle;
  }
  if (frozen_trunk(network).empty()) {
    return "no layers from the first one on are frozen";
  }
  if (choice_.variants == 0) {
    return "each epoch shows every picture in another way: --augment-variants N shows it in N" +
           gain_words(choice_.steps, ", and makes steps after epoch N");
  }
  return trunk_obstacle(network, plan);
}

// As the cache of pictures: with as much again for what else needs memory.
bool TrunkCaching::fits_in_memory(Index own, Index of_machine) const {
  const bool fits = of_machine <= choice_.left.of_machine / 2 && own <= choice_.left.of_rank;
  return on_all_ranks(communicator_, fits);
}

// Makes it, too; what stands in the way of that the first record tells.
std::optional<std::string> TrunkCaching::lack_of_space(Index of_machine) const {
  const std::filesystem::path& folder = choice_.request.folder;
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  const auto space = std::filesystem::space(folder, problem);
  if (problem || static_cast<Index>(space.available) >= of_machine) {
    return std::nullopt;
  }
  return fmt::format("{} has {} left, and the maps take {} on this device",
                     printable(folder.string()),
                     readable_bytes(static_cast<Index>(space.available)),
                     readable_bytes(of_machine));
}

std::optional<TrunkCacheOptions> TrunkCaching::options(
    const partitioner::Network& network,
    const partitioner::Plan& plan,
    const std::string& identity,
    const std::function<void(const std::string&)>& warn) const {
  if (!is_on_ || why_not(network, plan)) {
    return std::nullopt;
  }
  return TrunkCacheOptions{.folder = choice_.request.place == Place::Folder
                                         ? choice_.request.folder
                                         : std::filesystem::path(),
                           .identity = identity,
                           .warn = warn};
}

}  // namespace tessera::engine
