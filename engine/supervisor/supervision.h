// The times by which supervisor and agents judge each other.

#pragma once

#include <optional>

#include "engine/supervisor/protocol.h"

namespace tessera::engine {

inline constexpr double kBeat_s = 0.25;       // between signs of life
inline constexpr double kUsualSilence_s = 3;  // after which a device or rank counts as lost
inline constexpr double kAgentPatience = 3;   // times that, before an agent ends its ranks
inline constexpr double kHeardLately = 2;     // times that, within which a supervisor is there
inline constexpr double kLongestKill_s = 2;   // that processes take to end once killed
// On a device that the supervisor does not reach: until a cable is mended, or a person goes on.
inline constexpr double kStateKept_s = 24 * 3600;
// That ranks have to save and end where all processes are told to, which systemd gives 90 s.
inline constexpr double kLongestFarewell_s = 60;

inline constexpr double kBetweenTakers_s = 10;  // from one device's try to take over to the next's

inline constexpr const char* kTakeOverLog = "supervisor.log";
inline constexpr const char* kHeardName = "heard";
inline constexpr const char* kBegunName = "begun";
inline constexpr const char* kFaultsName = "faults.jsonl";
inline constexpr const char* kRequestName = "request.json";

// What is known of how long a phase of training may take.
struct PhaseLength {
  double step_s = 0;  // of a usual step; 0: unknown
  Index steps = 0;    // of a test: it should take no longer than so many
  Index bytes = 0;    // that may have to reach the disk
};

// After how long without a finished step ranks count as hanging, though they give signs of life;
// nothing: nobody can say, and longest_idle_s() counts.
//
// Steps:  20 usual ones, and 30 s, which a disk that is slow once may take.
// Test:   the same of its steps: a test has no backward pass, so it takes less than that.
// Saving: what it has to write, at an eighth of what the slowest class of SD cards promises, and
//         2 minutes. A process that waits for its disk shows no sign of work.
// Setup:  nothing predicts how long pictures are listed and read, a partition is searched, a state
//         is restored, or the first step takes.
[[nodiscard]] std::optional<double> longest_phase_s(RankPhase phase, const PhaseLength& known);

// After how long without a sign of work of any rank (see work_watch.h) they count as hanging where
// that is all there is to judge by: 2 minutes, with the usual `silence_s`.
[[nodiscard]] double longest_idle_s(double silence_s);

// Processes that the kernel has killed on this machine, or in this control group, since memory ran
// out; 0 where it does not say.
[[nodiscard]] Index kills_for_memory();

}  // namespace tessera::engine
