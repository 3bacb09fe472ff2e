#include "engine/comm/rank_equality.h"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

#include "engine/comm/agreement.h"
#include "engine/comm/texts_of_ranks.h"
#include "engine/system/host_name.h"
#include "partitioner/base/fingerprint.h"

namespace tessera::engine {

std::string rank_on(int rank, std::string_view host) {
  return fmt::format("rank {} ({})", rank, host);
}

std::optional<std::string> named_problem(const Communicator& communicator,
                                         const std::optional<std::string>& problem,
                                         bool looked) {
  const std::vector<int> have = communicator.of_ranks(static_cast<int>(problem.has_value()));
  const std::vector<int> could = communicator.of_ranks(static_cast<int>(looked));
  return problem && have != could
             ? fmt::format("{}: {}", rank_on(communicator.rank(), host_name()), *problem)
             : problem;
}

void expect_same(std::string_view text, const std::string& what, const Communicator& communicator) {
  Fingerprint print;
  print.add(text);
  const std::vector<std::string> prints = texts_of_ranks(communicator, print.text());
  const auto other = std::find_if(
      prints.begin(), prints.end(), [&](const std::string& its) { return its != prints[0]; });
  if (other == prints.end()) {
    return;
  }
  const std::vector<std::string> hosts = hosts_of_ranks(communicator);
  const auto rank = static_cast<std::size_t>(other - prints.begin());
  throw AgreedError(fmt::format("{} has a different {} than {}: all ranks need the same",
                                rank_on(static_cast<int>(rank), hosts[rank]),
                                what,
                                rank_on(0, hosts[0])));
}

}  // namespace tessera::engine
