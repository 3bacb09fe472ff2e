// Where a rank keeps what it has computed of the maps of the frozen trunk: a record for each image
// that is shown, in memory or in a folder.

#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/tensor.h"

namespace tessera::engine {

struct TrunkRecord {
  int home = 0;  // whose cells they are, see partitioner/plan/trunk_homes.h
  std::span<const float> values;
};

class TrunkStore {
 public:
  virtual ~TrunkStore() = default;
  TrunkStore(const TrunkStore&) = delete;
  TrunkStore& operator=(const TrunkStore&) = delete;

  // Nothing where there is no such record, or one that is not what was kept. Values last until the
  // next call.
  [[nodiscard]] virtual std::optional<TrunkRecord> find(Index number) = 0;
  // Returns what went wrong, if anything did.
  [[nodiscard]] virtual std::optional<std::string> keep(Index number,
                                                        const TrunkRecord& record) = 0;
  // Whether a record can be lost, or be there from an earlier run.
  [[nodiscard]] virtual bool is_on_disk() const = 0;
  [[nodiscard]] virtual Index memory_bytes() const = 0;

 protected:
  TrunkStore() = default;
};

[[nodiscard]] std::unique_ptr<TrunkStore> make_memory_store(Index records);

// Files FOLDER/trunk-KEY/RANK/..., one for each record, which another run of the same key goes on
// with. They are believed by their digest, of which `key` is a part; one of more values than
// `most_values` is none.
[[nodiscard]] std::unique_ptr<TrunkStore> make_folder_store(const std::filesystem::path& folder,
                                                            std::uint64_t key,
                                                            int rank,
                                                            Index most_values);

}  // namespace tessera::engine
