// A meter of electric power: what it measures, how often a look at it pays, and its readings.
//
// A meter shows watts, or it counts joules: then only differences of its readings mean anything.
// What a meter of one board shows is of everything that runs there, not of this process alone.

#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace tessera::engine {

// What a meter measures the power of.
enum class MeterScope {
  Processor,  // processor packages alone: less than the board takes
  Rails,      // some of a board's supplies
  Board,      // a whole board
  Cluster     // all boards together
};

// "processor", "rails", "board", "cluster"
[[nodiscard]] const char* name_of(MeterScope scope);

struct MeterDescription {
  std::string source;  // "rapl", "hwmon:ina226", "table:Raspberry Pi 3 Model B"
  MeterScope scope = MeterScope::Board;
  double period_s = 1;                   // from one look at it to the next
  bool counts_joules = false;            // else it shows watts
  std::optional<double> relative_error;  // 0.02: 2 %; nothing: unknown
  bool estimated = false;                // from a table, not measured
  friend bool operator==(const MeterDescription&, const MeterDescription&) = default;
};

struct PowerReading {
  double time_s = 0;  // of now_s(), in the middle of the look at the meter
  double value = 0;   // watts; of a meter that counts, joules since some moment
  // A counter has begun anew since the last reading: what was counted in between is lost.
  bool restarted = false;
};

// What a look at a meter brings, as in PowerReading.
struct MeterValue {
  // NOLINTNEXTLINE(google-explicit-constructor): most meters show a number
  MeterValue(double shown, bool began_anew = false) : value(shown), restarted(began_anew) {}
  double value;
  bool restarted;
};

// No board or cluster that this is for takes more: a meter that shows it is mistaken.
inline constexpr double kMostWatts = 1e5;

// With what a meter is looked at.
struct MeterQuery {
  double busy_cores = 0;      // of the board, since the last look; only estimates depend on it
  std::stop_token stop = {};  // asks a look that takes long to end early, as a failure
};

class PowerMeter {
 public:
  // The value of a reading; throws InputError that says why there is none.
  using Look = std::function<MeterValue(const MeterQuery&)>;

  PowerMeter(MeterDescription description, Look look)
      : description_(std::move(description)), look_(std::move(look)) {}

  [[nodiscard]] const MeterDescription& description() const { return description_; }
  // For a meter that cannot know what it is connected to.
  void set_scope(MeterScope scope) { description_.scope = scope; }

  // Nothing where it failed or shows what cannot be, such as negative watts: problem() then says
  // why. May take seconds where a meter is a command
  // or is asked over a network.
  [[nodiscard]] std::optional<PowerReading> read(const MeterQuery& query = {});
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  // Why a value is not to be believed; empty: it may be.
  [[nodiscard]] std::string doubt(double value) const;

  MeterDescription description_;
  Look look_;
  std::string problem_;
};

}  // namespace tessera::engine
