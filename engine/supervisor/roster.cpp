#include "engine/supervisor/roster.h"

#include <algorithm>
#include <cmath>

namespace tessera::engine {

namespace {

constexpr double kFirstTry_s = 2;
constexpr double kLongestPause_s = 30;
constexpr double kLeastSteady_s = 5;  // of a device that was lost once; twice that after each more
constexpr double kLongestSteady_s = 600;

}  // namespace

std::vector<int> Roster::taking_part() const {
  std::vector<int> all;
  for (int device = 0; device < size(); ++device) {
    if (takes_part(device)) {
      all.push_back(device);
    }
  }
  return all;
}

void Roster::lose(int device, double now_s) {
  Device& lost = at(device);
  lost.losses += lost.takes_part ? 1 : 0;
  lost.takes_part = false;
  lost.reachable = false;
  lost.pause_s = kFirstTry_s;
  lost.next_try_s = now_s + kFirstTry_s;
}

void Roster::reach(int device, double now_s) {
  if (!at(device).reachable) {
    at(device).reachable = true;
    at(device).reachable_s = now_s;
  }
}

void Roster::take_back(int device) {
  at(device).takes_part = true;
  at(device).reachable = true;
}

bool Roster::is_to_be_tried(int device, double now_s, bool soon) const {
  const Device& out = at(device);
  const double early_s = soon ? std::max(0.0, out.pause_s - kFirstTry_s) : 0;
  return !out.takes_part && !out.reachable && now_s >= out.next_try_s - early_s;
}

void Roster::missed(int device, double now_s) {
  Device& missing = at(device);
  missing.reachable = false;
  missing.pause_s = std::clamp(2 * missing.pause_s, kFirstTry_s, kLongestPause_s);
  missing.next_try_s = now_s + missing.pause_s;
}

std::vector<int> Roster::worth_taking_back(const Prospect& prospect, double now_s) const {
  std::vector<int> back;
  for (int device = 0; device < size(); ++device) {
    const Device& out = at(device);
    const double steady_s =
        std::min(kLongestSteady_s, kLeastSteady_s * std::exp2(std::max(0, out.losses - 1)));
    if (!out.takes_part && out.reachable && now_s - out.reachable_s >= steady_s) {
      back.push_back(device);
    }
  }
  const auto now = static_cast<double>(taking_part().size());
  const auto then = now + static_cast<double>(back.size());
  const double left_s = prospect.step_s * static_cast<double>(prospect.steps_left);
  const bool pays = prospect.step_s > 0 && left_s * (1 - now / then) > 2 * prospect.change_s;
  return pays ? back : std::vector<int>();
}

}  // namespace tessera::engine
