// Names of machines: of this one, and of those on which ranks are.

#pragma once

#include <string>
#include <vector>

namespace tessera::engine {

[[nodiscard]] std::string host_name();

// Whether no lower rank is on the machine of this one: of several there it tells and measures what
// is the machine's. `hosts`: of all ranks.
[[nodiscard]] bool is_first_on_host(const std::vector<std::string>& hosts, int rank);

}  // namespace tessera::engine
