#include "engine/session/memory_needs.h"

#include <fmt/format.h>
#include <malloc.h>
#include <optional>
#include <unistd.h>

#include "engine/comm/agreement.h"
#include "engine/comm/texts_of_ranks.h"
#include "engine/layers/workspace.h"
#include "engine/system/system_memory.h"
#include "partitioner/base/quantities.h"
#include "partitioner/cost/cluster_profile.h"

namespace tessera::engine {

std::vector<Index> workspace_bytes_of_ranks(const partitioner::Network& network,
                                            const partitioner::Plan& plan,
                                            bool training) {
  std::vector<Index> bytes;
  bytes.reserve(static_cast<std::size_t>(plan.ranks));
  for (int rank = 0; rank < plan.ranks; ++rank) {
    bytes.push_back(workspace_elements(network, plan, rank, {.training = training}) *
                    partitioner::MemoryOptions{}.scalar_bytes);
  }
  return bytes;
}

Index program_bytes_in_training() {
  // Code and small objects that only training brings: 2 to 4 MiB, wherever it was looked at.
  constexpr Index kTrainingBytes = Index{3} << 20U;
  constexpr Index kMebibyte = Index{1} << 20U;
  ::malloc_trim(0);  // what was freed
  const Index resident = resident_bytes();
  return resident == 0 ? partitioner::kUsualProgramBytes
                       : (resident + kTrainingBytes + kMebibyte - 1) / kMebibyte * kMebibyte;
}

std::vector<Index> program_bytes_of_ranks(const Communicator& communicator) {
  return communicator.of_ranks(program_bytes_in_training());
}

partitioner::ReportOptions report_options(const std::string& model,
                                          const partitioner::Network& network,
                                          const partitioner::Plan& plan,
                                          const partitioner::TrainedArrays& trained) {
  partitioner::ReportOptions options;
  options.model = model;
  options.memory.trained = trained;
  options.memory.picture_batches = 1;
  options.memory.program_bytes = partitioner::kUsualProgramBytes;
  options.workspace_bytes = workspace_bytes_of_ranks(network, plan, true);
  return options;
}

Index sum_on_this_machine(Index mine, const Communicator& communicator) {
  const std::vector<std::string> hosts = hosts_of_ranks(communicator);
  const std::vector<Index> all = communicator.of_ranks(mine);
  const std::string& own = hosts[static_cast<std::size_t>(communicator.rank())];
  Index sum = 0;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    sum += hosts[rank] == own ? all[rank] : 0;
  }
  return sum;
}

Index memory_left_by(const std::vector<partitioner::MemoryUse>& planned,
                     const Communicator& communicator) {
  const Index needed = planned[static_cast<std::size_t>(communicator.rank())].total();
  return free_memory_bytes() + sum_on_this_machine(resident_bytes() - needed, communicator);
}

void expect_memory(const std::vector<partitioner::MemoryUse>& planned,
                   const std::string& model,
                   const Communicator& communicator,
                   const std::string& remedy) {
  const auto rank = static_cast<std::size_t>(communicator.rank());
  const Index needed = planned[rank].total();
  const Index all_needed = sum_on_this_machine(needed, communicator);
  const Index all_resident = sum_on_this_machine(resident_bytes(), communicator);
  const Index machine = static_cast<Index>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  // Ranks of one machine share their control group, and what they have already counts as theirs.
  const auto left = memory_left_by_groups();
  std::optional<std::string> there;
  if (left && all_needed > *left + all_resident) {
    there = fmt::format("its control group leaves {}", readable_bytes(*left + all_resident));
  } else if (machine > 0 && all_needed > machine) {
    there = fmt::format("its machine has {}", readable_bytes(machine));
  }
  std::optional<std::string> problem;
  if (there) {
    const std::string others =
        all_needed > needed ? fmt::format(" ({} with the others there)", readable_bytes(all_needed))
                            : "";
    problem = fmt::format(
        "{}: training needs {} on rank {}{}, {}: use fewer images at a time (--batch, "
        "--subdivisions), or cut it into more tiles{}{}",
        model,
        readable_bytes(needed),
        rank,
        others,
        *there,
        planned[rank].cache > 0 ? ", or keep decoded pictures in files (--cache FOLDER)" : "",
        remedy.empty() ? "" : ", " + remedy);
  }
  throw_agreed(communicator, problem);
}

}  // namespace tessera::engine
