#include "engine/supervisor/run_notes.h"

#include <chrono>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "engine/run_files/names.h"
#include "engine/run_files/run_summary.h"
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

void RunNotes::add_lost_supervisor(const std::filesystem::path& run_folder,
                                   const std::string& device) const {
  std::error_code error;
  if (state_of_run(run_folder) != "running" || std::filesystem::exists(file_, error)) {
    return;
  }
  const auto written = std::filesystem::last_write_time(run_folder / run_file::kMetrics, error);
  const auto ago = std::filesystem::file_time_type::clock::now() - written;
  add("fault",
      fmt::format("the supervisor on {} was gone", device),
      device,
      error ? 0 : std::chrono::duration<double>(ago).count());
}

}  // namespace tessera::engine
