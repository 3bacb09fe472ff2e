// Numbers for people: "12.3 MiB", "4.1 G", "12.3 kJ", "1 group". At most three digits before the
// point.

#pragma once

#include <span>
#include <string>
#include <string_view>

#include "partitioner/base/region.h"

namespace tessera {

// A multiple of a unit: "MiB" is 1048576 bytes, "%" is 0.01 of a share.
struct ScaledUnit {
  double size = 1;
  const char* name = "";
};

inline constexpr ScaledUnit kJoules[] = {
    {1e-3, "mJ"}, {1, "J"}, {1e3, "kJ"}, {1e6, "MJ"}, {1e9, "GJ"}};

// The multiple of a unit in which a value of this magnitude has one to three digits before the
// point; of 0, the unit itself. `multiples` rise; the first one is for all that is smaller.
[[nodiscard]] ScaledUnit fitting_unit(std::span<const ScaledUnit> multiples, double magnitude);

// "1.42", "12.3", "0.0123", "4.00e-03"
[[nodiscard]] std::string three_digits(double value);

// Of predictions, which deserve no more: "1.4", "120", "0.012".
[[nodiscard]] std::string two_digits(double value);

[[nodiscard]] std::string readable_bytes(Index bytes);        // B, KiB, MiB, ...
[[nodiscard]] std::string readable_count(Index count);        // k, M, G, ...: powers of 1000
[[nodiscard]] std::string readable_energy(double energy_j);   // mJ, J, kJ, ...: three digits
[[nodiscard]] std::string readable_seconds(double seconds);   // ms, s, min, h: likewise
[[nodiscard]] std::string predicted_energy(double energy_j);  // with two digits
[[nodiscard]] std::string predicted_seconds(double seconds);  // likewise
[[nodiscard]] std::string mebibytes(Index bytes);             // without the unit, for columns
[[nodiscard]] std::string share_of(Index part, Index whole);  // "8.2 %"
[[nodiscard]] std::string counted(Index count, std::string_view noun);  // "1 rank", "2 ranks"

}  // namespace tessera
