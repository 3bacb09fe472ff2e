#include "engine/files/run_state.h"

#include <nlohmann/json.hpp>

#include "engine/files/json_text.h"
#include "engine/files/run_files.h"

namespace tessera::engine {

std::string state_of_run(const std::filesystem::path& folder) {
  const auto run =
      nlohmann::json::parse(read_json_text(folder / run_file::kRun).value_or(""), nullptr, false);
  const auto state = run.is_object() ? run.find("state") : run.end();
  return run.is_object() && state != run.end() && state->is_string() ? state->get<std::string>()
                                                                     : "";
}

}  // namespace tessera::engine
