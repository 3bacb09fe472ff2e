#include "engine/supervisor/run_notes.h"

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/supervisor/supervision.h"

namespace tessera::engine {

RunNotes::RunNotes(const std::filesystem::path& state_folder) : file_(state_folder / kFaultsName) {}

void RunNotes::add(const std::string& kind,
                   const std::string& text,
                   const std::string& device,
                   double ago_s) const {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  const double unix_s = std::chrono::duration<double>(since).count() - ago_s;
  std::ofstream file(file_, std::ios::app);
  file << nlohmann::json{{"kind", kind}, {"unix_s", unix_s}, {"text", text}, {"device", device}}
              .dump()
       << '\n';
}

}  // namespace tessera::engine
