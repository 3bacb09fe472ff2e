#include "engine/comm/rank_equality.h"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

#include "engine/comm/agreement.h"
#include "engine/system/host_name.h"
#include "partitioner/base/fingerprint.h"

namespace tessera::engine {

namespace {

std::vector<std::string> texts_of_ranks(const std::string& mine, const Communicator& communicator) {
  std::vector<std::string> texts;
  for (const auto& bytes : communicator.gather_all(bytes_of(mine.data(), std::ssize(mine)))) {
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return texts;
}

}  // namespace

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
  const std::vector<std::string> prints = texts_of_ranks(print.text(), communicator);
  const auto other = std::find_if(
      prints.begin(), prints.end(), [&](const std::string& its) { return its != prints[0]; });
  if (other == prints.end()) {
    return;
  }
  const std::vector<std::string> hosts = texts_of_ranks(host_name(), communicator);
  const auto rank = static_cast<std::size_t>(other - prints.begin());
  throw AgreedError(fmt::format("{} has a different {} than {}: all ranks need the same",
                                rank_on(static_cast<int>(rank), hosts[rank]),
                                what,
                                rank_on(0, hosts[0])));
}

}  // namespace tessera::engine
