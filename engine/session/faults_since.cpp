#include "engine/session/faults_since.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/files/json_text.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

FaultsSince::FaultsSince(const std::string& file, Index steps_before, Index begun)
    : file_(file), repeated_(std::max<Index>(steps_before - begun, 0)) {
  if (file.empty()) {
    return;
  }
  for_each_json_line(file, [this](const std::string& line) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object() && json.contains("unix_s") && json["unix_s"].is_number() &&
        json.contains("text") && json["text"].is_string()) {
      faults_.push_back({json["unix_s"].get<double>(),
                         json.contains("kind") && json["kind"] == "return" ? "return" : "fault",
                         json["text"].get<std::string>()});
    }
  });
}

void FaultsSince::tell(
    const std::function<void(const std::string& kind, const std::string& text)>& told) {
  for (const Fault& fault : faults_) {
    told(fault.kind, fault.text);
  }
  if (!faults_.empty()) {
    std::error_code error;
    std::filesystem::remove(file_, error);
  }
}

std::optional<FaultsSince::Recovery> FaultsSince::recovered() {
  if (faults_.empty() || told_) {
    return std::nullopt;
  }
  told_ = true;
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  const double now_s = std::chrono::duration<double>(since).count();
  // A clock that was set meanwhile says nothing.
  constexpr double kLongest_s = 7 * 86400.0;
  const double lost_s = now_s - faults_.front().unix_s;
  return Recovery{lost_s >= 0 && lost_s < kLongest_s ? lost_s : 0, repeated_};
}

std::string described(const FaultsSince::Recovery& recovery) {
  return fmt::format("training goes on after {:.1f} s; {} repeated",
                     recovery.lost_s,
                     counted(recovery.repeated_steps, "step"));
}

std::map<std::string, double> figures_of(const FaultsSince::Recovery& recovery) {
  return {{"lost_s", std::round(1e3 * recovery.lost_s) / 1e3},
          {"repeated_steps", static_cast<double>(recovery.repeated_steps)}};
}

}  // namespace tessera::engine
