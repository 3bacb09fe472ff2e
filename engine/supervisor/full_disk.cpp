#include "engine/supervisor/full_disk.h"

#include <algorithm>
#include <cstdint>

#include "engine/run_files/names.h"

namespace tessera::engine {

bool lacks_room(const std::filesystem::path& run_folder) {
  constexpr std::uintmax_t kLeastRoom = std::uintmax_t{1} << 20;
  std::error_code error;
  const auto room = std::filesystem::space(run_folder, error);
  if (error) {
    return false;
  }
  const std::uintmax_t checkpoint =
      std::filesystem::file_size(run_folder / run_file::kCheckpoint, error);
  return room.available < (error ? kLeastRoom : std::max(kLeastRoom, checkpoint));
}

}  // namespace tessera::engine
