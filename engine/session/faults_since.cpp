#include "engine/session/faults_since.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/files/json_text.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

namespace {

constexpr const char* kRepeatedKey = "repeated_steps";

std::string text_in(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

FaultsSince::FaultsSince(const std::string& file, Index steps_before, Index begun) : file_(file) {
  if (file.empty()) {
    return;
  }
  read(noted(), told_);
  read(file_, faults_);
  repeated_ += std::max<Index>(steps_before - begun, 0);
}

void FaultsSince::read(const std::string& file, std::vector<Fault>& faults) {
  for_each_json_line(file, [&](const std::string& line) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("unix_s") || !json["unix_s"].is_number()) {
      return;
    }
    faults.push_back({json["unix_s"].get<double>(),
                      text_in(json, "kind") == "return" ? "return" : "fault",
                      text_in(json, "text"),
                      text_in(json, "device")});
    if (json.contains(kRepeatedKey) && json[kRepeatedKey].is_number_unsigned()) {
      repeated_ = json[kRepeatedKey].get<Index>();
    }
  });
}

// Where the note cannot be written, events may come twice; training goes on.
void FaultsSince::tell(const Tell& told) {
  if (faults_.empty()) {
    return;
  }
  std::ofstream note(noted(), std::ios::app);
  for (const Fault& fault : faults_) {
    told(fault.kind, fault.text, {.device = fault.device});
    note << nlohmann::json{{"unix_s", fault.unix_s}, {kRepeatedKey, repeated_}}.dump() << '\n';
  }
  note.close();
  std::error_code error;
  std::filesystem::remove(file_, error);
}

std::optional<FaultCost> FaultsSince::recovered(double step_s) {
  if ((told_.empty() && faults_.empty()) || std::exchange(over_, true)) {
    return std::nullopt;
  }
  std::error_code error;
  std::filesystem::remove(noted(), error);
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  const double now_s = std::chrono::duration<double>(since).count();
  // A clock that was set meanwhile says nothing.
  constexpr double kLongest_s = 7 * 86400.0;
  const double first_s = told_.empty() ? faults_.front().unix_s : told_.front().unix_s;
  const double lost_s = now_s - first_s - step_s;
  return FaultCost{lost_s >= 0 && lost_s < kLongest_s ? lost_s : 0, repeated_};
}

std::string described(const FaultCost& cost) {
  return fmt::format("training goes on after {:.1f} s; {} repeated",
                     cost.lost_s,
                     counted(cost.repeated_steps, "step"));
}

}  // namespace tessera::engine
