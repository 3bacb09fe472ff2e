#include "engine/setup/examiner.h"

#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <iostream>
#include <optional>

#include "engine/setup/device_facts.h"
#include "engine/setup/host_addresses.h"
#include "engine/setup/link_trial.h"
#include "engine/supervisor/message_stream.h"
#include "engine/system/clock.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

using nlohmann::json;

constexpr double kResolving_s = 6;
constexpr double kLink_s = 8;

void answer(const json& message) {
  fmt::print("{}\n", message.dump(-1, ' ', true, json::error_handler_t::replace));
  std::fflush(stdout);
}

json resolved(const json& message) {
  std::vector<std::string> names;
  if (const auto found = message.find("names"); found != message.end() && found->is_array()) {
    for (const json& name : *found) {
      if (name.is_string()) {
        names.push_back(name.get<std::string>());
      }
    }
  }
  json interfaces = json::array();
  for (const InterfaceAddress& one : interface_addresses()) {
    json entry{{"address", one.address}, {"interface", one.interface}, {"wireless", one.wireless}};
    if (one.bits_per_s) {
      entry["bits_per_s"] = *one.bits_per_s;
    }
    interfaces.push_back(entry);
  }
  return {{"names", resolve_names(names, kResolving_s)}, {"interfaces", interfaces}};
}

void listen_for_trial(const json& message) {
  std::optional<LinkListener> listener;
  try {
    listener.emplace(text_in(message, "address"));
  } catch (const InputError& error) {
    answer({{"problem", error.what()}});
    return;
  }
  answer({{"port", listener->port()}});
  (void)listener->serve(text_in(message, "token"), kLink_s);
}

json tried(const json& message) {
  try {
    const LinkRates rates = try_link(text_in(message, "address"),
                                     static_cast<int>(number_in(message, "port", 0)),
                                     text_in(message, "token"),
                                     kLink_s);
    return {{"round_trip_s", rates.round_trip_s},
            {"to_bytes_per_s", rates.to_bytes_per_s},
            {"from_bytes_per_s", rates.from_bytes_per_s}};
  } catch (const InputError& error) {
    return {{"problem", error.what()}};
  }
}

}  // namespace

void run_examiner(const std::string& version) {
  for (std::string line; std::getline(std::cin, line);) {
    const auto message = message_in(line);
    const std::string question = message ? text_in(*message, "do") : "";
    if (question == "facts") {
      answer(to_json(look_at_device(text_in(*message, "folder"), version)));
    } else if (question == "resolve") {
      answer(resolved(*message));
    } else if (question == "time") {
      answer({{"time_s", time_of_day_s()}});
    } else if (question == "listen") {
      listen_for_trial(*message);
    } else if (question == "connect") {
      answer(tried(*message));
    }
  }
}

}  // namespace tessera::engine
