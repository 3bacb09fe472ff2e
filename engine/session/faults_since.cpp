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
constexpr const char* kStop = "stop";

double unix_now_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

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
    const std::string kind = text_in(json, "kind");
    faults.push_back({json["unix_s"].get<double>(),
                      kind == "return" || kind == kStop ? kind : "fault",
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
    if (fault.kind != kStop) {
      told(fault.kind,
           fault.text,
           {.device = fault.device, .ago_s = std::max(unix_now_s() - fault.unix_s, 0.0)});
    }
    note << nlohmann::json{{"unix_s", fault.unix_s},
                           {"kind", fault.kind},
                           {kRepeatedKey, repeated_}}
                .dump()
         << '\n';
  }
  note.close();
  std::error_code error;
  std::filesystem::remove(file_, error);
}

std::optional<double> FaultsSince::stood_s() const {
  std::vector<Fault> all = told_;
  all.insert(all.end(), faults_.begin(), faults_.end());
  if (all.empty()) {
    return std::nullopt;
  }
  constexpr double kLongest_s = 7 * 86400.0;
  const auto stop =
      std::find_if(all.begin(), all.end(), [](const Fault& fault) { return fault.kind == kStop; });
  const double stood_s = (stop == all.end() ? unix_now_s() : stop->unix_s) - all.front().unix_s;
  return stood_s >= 0 && stood_s < kLongest_s ? std::optional(stood_s) : std::nullopt;
}

std::optional<FaultCost> FaultsSince::recovered(double step_s) {
  if ((told_.empty() && faults_.empty()) || std::exchange(over_, true)) {
    return std::nullopt;
  }
  std::error_code error;
  std::filesystem::remove(noted(), error);
  return FaultCost{std::max(stood_s().value_or(0) - step_s, 0.0), repeated_};
}

std::string described(const FaultCost& cost) {
  return fmt::format("training goes on after {:.1f} s; {} repeated",
                     cost.lost_s,
                     counted(cost.repeated_steps, "step"));
}

}  // namespace tessera::engine
