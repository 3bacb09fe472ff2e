// Reads the folder of a run, and reads on as its files grow.

#pragma once

#include <filesystem>
#include <memory>

#include "engine/run_view/run_data.h"

namespace tessera::engine {

// Pictures of what a detector sees: hundreds of kilobytes, for those who show them.
enum class Sheets { Leave, Read };

class RunReader {
 public:
  // Throws InputError where the path is no folder that can be read.
  explicit RunReader(std::filesystem::path folder, Sheets sheets = Sheets::Leave);
  ~RunReader();
  RunReader(RunReader&&) noexcept;
  RunReader& operator=(RunReader&&) noexcept;

  // Takes in what is new since the last call and returns whether anything is. Files that were
  // replaced, by a run that is resumed or starts afresh, are read again. Only whole lines count
  // while the run is going; what is no JSON of the expected kind is skipped and counted.
  bool read();

  [[nodiscard]] const RunData& data() const;

 private:
  class Files;
  std::unique_ptr<Files> files_;
};

// All of it at once, sheets included.
[[nodiscard]] RunData read_run(const std::filesystem::path& folder);

}  // namespace tessera::engine
