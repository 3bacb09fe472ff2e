#include "engine/run_log/memory_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/system/system_memory.h"
#include "partitioner/base/quantities.h"
#include "partitioner/base/text_table.h"

namespace tessera::engine {

using partitioner::MemoryUse;

namespace {

nlohmann::ordered_json to_json(const MemoryUse& use) {
  nlohmann::ordered_json json;
  for (const partitioner::MemoryKind& kind : partitioner::kMemoryKinds) {
    json[kind.name] = use.*kind.bytes;
  }
  json["total"] = use.total();
  return json;
}

}  // namespace

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

std::string memory_json(const std::vector<MemoryUse>& planned,
                        const MeasuredMemory& measured,
                        const Communicator& communicator) {
  struct Report {
    MemoryUse use;
    Index peak_resident = 0;
  };
  const Report mine{measured.use,
                    std::max<Index>(peak_resident_bytes() - measured.resident_for_others, 0)};
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  const std::vector<Report> all = communicator.of_ranks(mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    nlohmann::ordered_json entry;
    entry["rank"] = rank;
    entry["planned"] = to_json(planned[rank]);
    entry["measured"] = to_json(all[rank].use);
    entry["measured"]["peak_resident"] = all[rank].peak_resident;
    ranks.push_back(std::move(entry));
  }
  return nlohmann::ordered_json{{"unit", "bytes"}, {"ranks", ranks}}.dump(1) + "\n";
}

std::string memory_table(const std::string& json) {
  const auto report = nlohmann::ordered_json::parse(json);
  std::vector<Column> columns = {{"rank"}, {"", Align::Left}};
  std::vector<MemoryUse> planned;
  for (const auto& rank : report["ranks"]) {
    planned.push_back({.kept = rank["planned"].value("kept", Index{0})});
  }
  const std::vector<partitioner::MemoryKind> kinds = memory_kinds_of(planned);
  for (const partitioner::MemoryKind& kind : kinds) {
    columns.push_back({kind.name});
  }
  columns.push_back({"total"});
  columns.push_back({"resident"});
  TextTable table(columns);
  for (const auto& rank : report["ranks"]) {
    for (const char* which : {"planned", "measured"}) {
      const auto& use = rank[which];
      const bool measured = use.contains("peak_resident");
      std::vector<std::string> cells = {measured ? "" : std::to_string(rank["rank"].get<int>()),
                                        which};
      for (const partitioner::MemoryKind& kind : kinds) {
        cells.push_back(mebibytes(use[kind.name].get<Index>()));
      }
      cells.push_back(mebibytes(use["total"].get<Index>()));
      cells.push_back(measured ? mebibytes(use["peak_resident"].get<Index>()) : "");
      table.add_row(std::move(cells));
    }
  }
  return "memory of each rank, MiB; resident: the peak, as the kernel counts it, with a share of a "
         "shared cache\n" +
         table.text();
}

}  // namespace tessera::engine
