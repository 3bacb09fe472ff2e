#include "engine/run_log/memory_record.h"

#include <algorithm>
#include <utility>

#include "engine/system/system_memory.h"
#include "partitioner/base/quantities.h"
#include "partitioner/base/text_table.h"

namespace tessera::engine {

using partitioner::MemoryUse;

MemoryUse measured_memory(const ExecutionMemory& execution, Index optimizer_bytes) {
  MemoryUse use;
  use.weights = execution.weights;
  use.gradients = execution.gradients;
  use.optimizer = optimizer_bytes;
  use.activations = execution.activations;
  use.workspace = execution.workspace;
  use.messages = execution.messages;
  return use;
}

std::vector<RankMemory> memory_of_ranks(const std::vector<MemoryUse>& planned,
                                        const MeasuredMemory& measured,
                                        const Communicator& communicator) {
  struct Report {
    MemoryUse use;
    Index peak_resident = 0;
  };
  const std::vector<Report> all = communicator.of_ranks(Report{
      measured.use, std::max<Index>(peak_resident_bytes() - measured.resident_for_others, 0)});
  std::vector<RankMemory> ranks;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    ranks.push_back({static_cast<int>(rank),
                     planned[rank],
                     all[rank].use,
                     static_cast<double>(all[rank].peak_resident)});
  }
  return ranks;
}

std::string memory_table(const std::vector<RankMemory>& ranks) {
  std::vector<Column> columns = {{"rank"}, {"", Align::Left}};
  std::vector<MemoryUse> planned;
  for (const RankMemory& rank : ranks) {
    planned.push_back(rank.planned);
  }
  const std::vector<partitioner::MemoryKind> kinds = memory_kinds_of(planned);
  for (const partitioner::MemoryKind& kind : kinds) {
    columns.push_back({kind.name});
  }
  columns.push_back({"total"});
  columns.push_back({"resident"});
  TextTable table(columns);
  const auto add = [&](std::vector<std::string> cells, const MemoryUse& use, std::string resident) {
    for (const partitioner::MemoryKind& kind : kinds) {
      cells.push_back(mebibytes(use.*kind.bytes));
    }
    cells.push_back(mebibytes(use.total()));
    cells.push_back(std::move(resident));
    table.add_row(std::move(cells));
  };
  for (const RankMemory& rank : ranks) {
    add({std::to_string(rank.rank), "planned"}, rank.planned, "");
    add({"", "measured"}, rank.measured, mebibytes(static_cast<Index>(rank.peak_resident_bytes)));
  }
  return "memory of each rank, MiB; resident: the peak, as the kernel counts it, with a share of a "
         "shared cache\n" +
         table.text();
}

}  // namespace tessera::engine
