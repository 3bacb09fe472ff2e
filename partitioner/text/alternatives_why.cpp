#include "partitioner/text/alternatives_why.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "partitioner/base/quantities.h"

namespace tessera::partitioner {

namespace {

constexpr double kSame = 1.005;  // times as much is as good as the same

std::string named(const Alternative& of) {
  return of.devices.empty() || of.name == kChosenName ? of.name
                                                      : fmt::format("{} ({})", of.name, of.devices);
}

// What another way would spend more time on than the chosen one: the most of it.
std::string time_difference(const Alternative& other, const Alternative& winner) {
  if (!other.time || !winner.time) {
    return "";
  }
  struct Part {
    const char* name;
    double more_s;
    double less_s;
  };
  const TimeShares& a = *other.time;
  const TimeShares& b = *winner.time;
  const Part parts[] = {{"computing on each device", a.computing_s(), b.computing_s()},
                        {"exchange of maps", a.maps_s, b.maps_s},
                        {"batch statistics", a.statistics_s, b.statistics_s},
                        {"gradient reduction", a.gradients_s, b.gradients_s},
                        {"the loss", a.loss_s, b.loss_s},
                        {"synchronisation", a.synchronisation_s, b.synchronisation_s},
                        {"waiting for the slowest device", a.idle_s, b.idle_s}};
  const Part* most = std::max_element(
      std::begin(parts), std::end(parts), [](const Part& first, const Part& second) {
        return first.more_s - first.less_s < second.more_s - second.less_s;
      });
  return fmt::format(
      ": {:.3g} s of {} instead of {:.3g} s", most->more_s, most->name, most->less_s);
}

std::string energy_difference(const Alternative& other, const Alternative& winner) {
  return fmt::format(": {} in {:.3g} s instead of {} in {:.3g} s",
                     readable_energy(other.energy->energy_j),
                     *other.step_s,
                     readable_energy(winner.energy->energy_j),
                     *winner.step_s);
}

class Reasons {
 public:
  explicit Reasons(const Alternatives& of)
      : of_(of), winner_(of.all.front()), of_energy_(is_of_energy(of.compared)) {}

  std::vector<std::string> all(Index busy, Index devices) {
    add_winner();
    add_inexact();
    add_idle(busy, devices);
    add_sharing();
    return std::move(why_);
  }

 private:
  // Exact training is compared with exact training.
  [[nodiscard]] bool is_rival(const Alternative& other) const {
    return &other != &winner_ && other.fits && other.ratio && (other.exact || !winner_.exact);
  }

  // Energy is of a step, whether samples are known or not.
  [[nodiscard]] const char* unit() const {
    return winner_.epoch_s && !of_energy_ ? "an epoch" : "a step";
  }

  [[nodiscard]] std::string times_now(double ratio) const {
    return of_energy_
               ? fmt::format("{:.2f} times the {} that it takes now", ratio, noun_of(of_.compared))
               : fmt::format("{:.2f} times what it takes now", ratio);
  }

  void add_winner() {
    const Alternative* nearest = nullptr;
    for (const Alternative& other : of_.all) {
      if (is_rival(other) && (nearest == nullptr || *other.ratio < *nearest->ratio)) {
        nearest = &other;
      }
    }
    if (nearest == nullptr) {
      return;
    }
    const double ratio = *nearest->ratio;
    const std::string name = named(*nearest);
    if (ratio * kSame < 1) {
      why_.push_back(fmt::format("With \"{}\" {} would take {}.", name, unit(), times_now(ratio)));
    } else if (ratio < kSame && of_energy_) {
      why_.push_back(fmt::format(
          "\"{}\" takes as much {} as the chosen partition.", name, noun_of(of_.compared)));
    } else if (ratio < kSame) {
      why_.push_back(fmt::format("\"{}\" is as fast as the chosen partition.", name));
    } else {
      why_.push_back(fmt::format(
          "The chosen partition wins: with \"{}\", the nearest, {} takes {:.2f} times {}{}.",
          name,
          unit(),
          ratio,
          of_energy_ ? fmt::format("the {}", noun_of(of_.compared)) : "as long",
          of_energy_ ? energy_difference(*nearest, winner_) : time_difference(*nearest, winner_)));
    }
  }

  void add_inexact() {
    for (const Alternative& other : of_.all) {
      if (winner_.exact && !other.exact && other.ratio && *other.ratio * kSame < 1) {
        why_.push_back(
            fmt::format("With \"{}\" {} would take {}, but training would no longer be exact: "
                        "its result would not be that of one device.",
                        named(other),
                        unit(),
                        times_now(*other.ratio)));
      }
    }
  }

  void add_idle(Index busy, Index devices) {
    const bool is_best =
        std::none_of(of_.all.begin(), of_.all.end(), [this](const Alternative& each) {
          return is_rival(each) && *each.ratio * kSame < 1;
        });
    if (busy >= devices || !is_best) {
      return;
    }
    why_.push_back(fmt::format(
        "It leaves {} of {} without work: with them a step would take {}.",
        devices - busy,
        counted(devices, "device"),
        of_energy_ ? fmt::format("more {}", noun_of(of_.compared))
                   : "longer, since messages would cost more than the computing that they take "
                     "over"));
  }

  // Where synchronising takes longer than what is computed, as in shallow networks, each device
  // that is added to share images makes a step slower (Park et al. 2020).
  void add_sharing() {
    const std::vector<SharedImages>& shared = of_.shared;
    if (shared.size() < 2) {
      return;
    }
    const auto best = std::min_element(
        shared.begin(), shared.end(), [](const SharedImages& a, const SharedImages& b) {
          return a.step_s < b.step_s;
        });
    if (best == shared.end() - 1) {
      return;
    }
    std::vector<std::string> steps;
    steps.reserve(shared.size());
    for (const SharedImages& each : shared) {
      steps.push_back(fmt::format("{:.3g}", each.step_s));
    }
    const SharedImages& next = *(best + 1);
    why_.push_back(fmt::format(
        "Sharing images among {} devices makes a step slower than among {} ({} s with 1, 2, ... "
        "devices): it is limited by {}.",
        next.devices,
        best->devices,
        fmt::join(steps, ", "),
        next.limited_by));
  }

  const Alternatives& of_;
  const Alternative& winner_;
  bool of_energy_;
  std::vector<std::string> why_;
};

}  // namespace

std::vector<std::string> why_it_wins(const Alternatives& alternatives, Index busy, Index devices) {
  return Reasons(alternatives).all(busy, devices);
}

}  // namespace tessera::partitioner
