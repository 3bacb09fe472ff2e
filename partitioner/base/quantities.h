// Numbers for people: "12.3 MiB", "4.1 G", "1 group". At most three digits before the point.

#pragma once

#include <string>
#include <string_view>

#include "partitioner/base/region.h"

namespace tessera {

[[nodiscard]] std::string readable_bytes(Index bytes);        // B, KiB, MiB, ...
[[nodiscard]] std::string readable_count(Index count);        // k, M, G, ...: powers of 1000
[[nodiscard]] std::string mebibytes(Index bytes);             // without the unit, for columns
[[nodiscard]] std::string share_of(Index part, Index whole);  // "8.2 %"
[[nodiscard]] std::string counted(Index count, std::string_view noun);  // "1 rank", "2 ranks"

}  // namespace tessera
