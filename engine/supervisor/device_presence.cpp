#include "engine/supervisor/device_presence.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/supervisor/connection.h"
#include "engine/supervisor/quorum.h"
#include "engine/system/clock.h"
#include "partitioner/base/shell_word.h"

namespace tessera::engine {

DevicePresence::DevicePresence(const SupervisorRequest& request,
                               const SupervisorRecord& record,
                               const RunDevices& devices)
    : record_(record),
      devices_(devices),
      any_(request.alone),
      witness_(record.witness.empty() ? default_gateway() : record.witness) {}

std::vector<int> DevicePresence::reached() const {
  std::vector<int> places;
  for (int device = 0; device < devices_.size(); ++device) {
    if (devices_.link(device).is_ready() || devices_.link(device).is_here()) {
      places.push_back(devices_.place_of(device));
    }
  }
  return places;
}

bool DevicePresence::is_enough() {
  constexpr double kBetween_s = 2;
  const Quorum quorum = any_ ? Quorum::Enough : quorum_of(record_.last_step, reached());
  if (quorum != Quorum::Half) {
    why_not_.clear();
    asked_s_.reset();
    return quorum == Quorum::Enough;
  }
  if (!asked_s_ || now_s() - *asked_s_ > kBetween_s) {
    why_not_ = why_half_is_not_enough();
    asked_s_ = now_s();
  }
  return why_not_.empty();
}

bool DevicePresence::is_a_part() const {
  return any_ || quorum_of(record_.last_step, reached()) != Quorum::Enough;
}

std::vector<std::string> DevicePresence::missing() const {
  const std::vector<int> there = reached();
  std::vector<std::string> names;
  for (const int place : record_.last_step) {
    if (std::find(there.begin(), there.end(), place) == there.end()) {
      names.push_back(record_.hosts[static_cast<std::size_t>(place)].name);
    }
  }
  return names;
}

std::string DevicePresence::why_half_is_not_enough() const {
  if (!record_.interface.empty() && !has_carrier(record_.interface)) {
    return fmt::format("the cable of {} is out here", record_.interface);
  }
  if (witness_.empty()) {
    return "there is no default gateway and no --witness to ask whether this half may go on";
  }
  const auto answers = answers_ping(witness_);
  if (!answers) {
    return fmt::format("the witness {} cannot be asked: ping is not installed", witness_);
  }
  return *answers ? "" : fmt::format("the witness {} does not answer", witness_);
}

std::string DevicePresence::what_is_missing() const {
  const std::vector<std::string> names = missing();
  const std::size_t all = record_.last_step.size();
  const std::size_t here = all - names.size();
  return fmt::format(
      "waiting for {}: {} of the {} devices of the last step {} here, too few to go on{}; to go on "
      "without the others, stop this and enter: tessera run --continue {} --alone",
      fmt::join(names, ", "),
      here,
      all,
      here == 1 ? "is" : "are",
      why_not_.empty() ? "" : ", since " + why_not_,
      shell_word(record_.run_folder));
}

}  // namespace tessera::engine
