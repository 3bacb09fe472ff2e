// What a device is asked when a cluster is examined, and what it answers: a struct each; on its way
// it is a line of JSON, written and read here alone. An answer does not say which question it is
// to: one comes for each, in their order. Either end may be of another version.

#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/cluster/device_facts.h"
#include "engine/cluster/link_trial.h"

namespace tessera::engine {

namespace to_device {
struct Facts {
  std::string folder;  // the working folder
};
struct Resolve {
  std::vector<std::string> names;
};
struct Time {};
struct Listen {  // for the trial of a link
  std::string address;
  std::string token;
};
struct Connect {
  std::string address;
  int port = 0;
  std::string token;
};
using Question = std::variant<Facts, Resolve, Time, Listen, Connect>;
}  // namespace to_device

namespace of_device {
// An address of one of a device's network interfaces that are up, but for those of the loopback.
struct Address {
  std::string address;
  std::string interface;
  std::optional<double> bits_per_s;  // that the interface has negotiated, where it says so
  bool wireless = false;
};
struct Resolved {
  std::map<std::string, std::vector<std::string>> names;  // with their addresses, if there are any
  std::vector<Address> interfaces;
};
struct Time {
  double time_s = 0;  // since 1970
};
struct Listening {
  int port = 0;         // 0: it does not listen
  std::string problem;  // why
};
struct Tried {
  LinkRates rates;
  std::string problem;  // why there are none
};
using Answer = std::variant<DeviceFacts, Resolved, Time, Listening, Tried>;
}  // namespace of_device

// Without the end of the line.
[[nodiscard]] std::string line_of(const to_device::Question& question);
[[nodiscard]] std::string line_of(const of_device::Answer& answer);

// Nothing where the line is no question, or damaged. What it lacks has its default.
[[nodiscard]] std::optional<to_device::Question> question_in(const std::string& line);

// Whether a line may be an answer: a shell says other things before the first one.
[[nodiscard]] bool is_answer(const std::string& line);
// One: a struct of an answer. Facts that are missing or of another kind are as they are where
// nothing is known; else nothing comes of a line that is damaged.
template <class One>
[[nodiscard]] std::optional<One> answer_in(const std::string& line);

// For the JSON library: facts are shown as they travel.
void to_json(nlohmann::json& object, const DeviceFacts& facts);

}  // namespace tessera::engine
