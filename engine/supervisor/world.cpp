#include "engine/supervisor/world.h"

#include <algorithm>
#include <array>
#include <csignal>

#include "engine/supervisor/supervision.h"

namespace tessera::engine {

namespace {

std::vector<int> ranks_of_devices(const std::vector<int>& devices) {
  std::vector<int> counts;
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    if (rank == 0 || devices[rank] != devices[rank - 1]) {
      counts.push_back(0);
    }
    ++counts.back();
  }
  return counts;
}

}  // namespace

World::World(Index number, std::vector<int> devices, double now_s)
    : number_(number),
      devices_(std::move(devices)),
      pmi_(size(), process_mapping(ranks_of_devices(devices_))),
      heard_(devices_.size()),
      saved_(devices_.size()),
      ends_(devices_.size()),
      started_s_(now_s),
      moved_s_(now_s) {}

std::optional<int> World::first_silent() const {
  const auto silent = std::find(heard_.begin(), heard_.end(), false);
  return silent == heard_.end() ? std::nullopt
                                : std::optional(static_cast<int>(silent - heard_.begin()));
}

void World::finish_step(Index step, Index last, double now_s) {
  constexpr std::size_t kLatest = 15;
  if (steps_done_ > 0) {
    latest_s_.push_back(now_s - moved_s_);
    if (latest_s_.size() > kLatest) {
      latest_s_.erase(latest_s_.begin());
    }
  }
  step_ = step;
  last_ = last;
  ++steps_done_;
  moved_s_ = now_s;
}

double World::step_s() const {
  if (latest_s_.empty()) {
    return 0;
  }
  std::vector<double> sorted = latest_s_;
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}

void World::finish_rank(int rank, const ProcessEnd& end) {
  ends_[static_cast<std::size_t>(rank)] = end;
  if (!failure_ && (end.code != 0 || end.signal != 0)) {
    failure_ = end;
  }
}

int World::ended() const {
  return static_cast<int>(
      std::count_if(ends_.begin(), ends_.end(), [](const auto& end) { return end.has_value(); }));
}

bool World::all_ended() const {
  return ended() == size();
}

bool World::has_ended_on(int device) const {
  for (int rank = 0; rank < size(); ++rank) {
    if (device_of(rank) == device && !ends_[static_cast<std::size_t>(rank)]) {
      return false;
    }
  }
  return true;
}

bool is_stopped(const ProcessEnd& end) {
  return end.signal == 0 && (end.code == kSignalled + SIGHUP || end.code == kSignalled + SIGINT ||
                             end.code == kSignalled + SIGTERM);
}

bool is_deliberate(const ProcessEnd& end) {
  return end.signal == 0 && end.code <= kInputError;
}

bool is_crash(const ProcessEnd& end) {
  constexpr std::array kOwn{
      SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGSYS, SIGTRAP, SIGXCPU, SIGXFSZ};
  return end.signal == 0 ? !is_deliberate(end) && !is_stopped(end) && end.code != kOthersMissing
                         : std::find(kOwn.begin(), kOwn.end(), end.signal) != kOwn.end();
}

int exit_code_of(const ProcessEnd& end) {
  return end.signal == 0 ? end.code : kSignalled + end.signal;
}

}  // namespace tessera::engine
