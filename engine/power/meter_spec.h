// How a user names a meter: [WHERE=]KIND[:ARGUMENT].
//
//   auto                     the best meter that this machine has, else an estimate, else none
//   none
//   rapl, hwmon, pmic        that one; an error where it is not there
//   command:PROGRAM ARGS     prints watts ("12.3", "12.3 W") or counts joules ("4567 J")
//   shelly:http://10.0.0.7   a plug, asked over the network; also tasmota:URL
//   file:PATH                a recorded curve, for tests: see file_meter.h
//   table, table:pi3b        an estimate by board and busy cores
//
// WHERE is the host whose board the meter measures, or `cluster`: all boards together. Without it
// each machine reads such a meter of its own.

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tessera::engine {

enum class MeterKind { Automatic, None, Rapl, Hwmon, Pmic, Command, Shelly, Tasmota, File, Table };

struct MeterSpec {
  MeterKind kind = MeterKind::Automatic;
  std::string argument = {};
  std::string host = {};  // whose board; empty: of every machine
  bool cluster = false;   // all boards together
  friend bool operator==(const MeterSpec&, const MeterSpec&) = default;
};

// Throws InputError that says what was expected.
[[nodiscard]] MeterSpec parse_meter(const std::string& text);

// parse_meter(to_text(spec)) == spec.
[[nodiscard]] std::string to_text(const MeterSpec& spec);

// What one rank reads.
struct RankMeters {
  MeterSpec board;                   // of its machine
  std::optional<MeterSpec> cluster;  // beside it, on rank 0; what it counts includes the boards
};

// The meters of a rank, where `hosts` are the machines that ranks run on, [rank]. The first rank of
// a machine reads its board's meter, the others none: what is measured is of all of them. Throws
// InputError where `specs` name an unknown host, two meters of one place, or one plug as every
// machine's. The same on all ranks.
[[nodiscard]] RankMeters meters_of_rank(const std::vector<MeterSpec>& specs,
                                        const std::vector<std::string>& hosts,
                                        int rank);

}  // namespace tessera::engine
