// `tessera doctor`.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/cli/commands.h"
#include "engine/cli/messages.h"
#include "engine/cli/version.h"
#include "engine/cluster/findings.h"
#include "engine/processes/child_process.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"
#include "partitioner/base/text_table.h"

namespace tessera::engine {

namespace {

constexpr double kBitsOfByte = 8;

std::string mbit_per_s(double bytes_per_s) {
  return three_digits(1e-6 * kBitsOfByte * bytes_per_s);
}

std::string milliseconds(double seconds) {
  return three_digits(1e3 * seconds);
}

std::string hundredths(double seconds) {
  constexpr double kNone = 0.005;
  return std::abs(seconds) < kNone ? "0" : fmt::format("{:+.2f}", seconds);
}

// The link between the first device and another one.
const ExaminedLink* link_to_first(const Examination& examination, int device) {
  for (const ExaminedLink& link : examination.links) {
    if (link.a == 0 && link.b == device && link.problem.empty()) {
      return &link;
    }
  }
  return nullptr;
}

void print_devices(const Examination& examination) {
  TextTable table({{"device", Align::Left},
                   {"address", Align::Left},
                   {"processors"},
                   {"memory free"},
                   {"disk free"},
                   {"on", Align::Left},
                   {"°C"},
                   {"clock s"},
                   {"round trip ms"},
                   {"Mbit/s to"},
                   {"from"}});
  for (std::size_t i = 0; i < examination.devices.size(); ++i) {
    const ExaminedDevice& device = examination.devices[i];
    if (!device.facts) {
      std::vector<std::string> cells(11, "-");
      cells[0] = device.host.name;
      table.add_row(cells);
      continue;
    }
    const DeviceFacts& facts = *device.facts;
    const ExaminedLink* link = link_to_first(examination, static_cast<int>(i));
    table.add_row({device.host.name,
                   device.address,
                   fmt::format("{} {}", facts.processors, facts.architecture),
                   readable_bytes(facts.free_memory_bytes),
                   facts.folder_exists ? readable_bytes(facts.folder_free_bytes) : "-",
                   facts.folder_exists ? name_of_storage(facts.storage) : "-",
                   facts.temperature_c ? fmt::format("{:.0f}", *facts.temperature_c) : "-",
                   device.clock_offset_s ? hundredths(*device.clock_offset_s) : "-",
                   link != nullptr ? milliseconds(link->round_trip_s) : "-",
                   link != nullptr ? mbit_per_s(link->forward_bytes_per_s) : "-",
                   link != nullptr ? mbit_per_s(link->back_bytes_per_s) : "-"});
  }
  fmt::print("{}", table.text());
}

// Of the links that the table does not have.
void print_other_links(const Examination& examination) {
  const ExaminedLink* slowest = nullptr;
  int count = 0;
  const auto least = [](const ExaminedLink& link) {
    return std::min(link.forward_bytes_per_s, link.back_bytes_per_s);
  };
  for (const ExaminedLink& link : examination.links) {
    if (link.a != 0 && link.problem.empty()) {
      ++count;
      slowest = slowest == nullptr || least(link) < least(*slowest) ? &link : slowest;
    }
  }
  if (slowest != nullptr) {
    const auto name = [&](int device) {
      return examination.devices[static_cast<std::size_t>(device)].host.name;
    };
    fmt::print("{} between the others; the slowest, {} and {}: {} Mbit/s, round trip {} ms\n",
               counted(count, "link"),
               name(slowest->a),
               name(slowest->b),
               mbit_per_s(least(*slowest)),
               milliseconds(slowest->round_trip_s));
  }
}

nlohmann::json to_json(const Finding& finding) {
  return {{"subject", finding.subject}, {"what", finding.what}, {"remedy", finding.remedy}};
}

nlohmann::json findings_for(const std::vector<Finding>& findings, int device, bool problems) {
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& finding : findings) {
    if (finding.device == device && finding.is_problem == problems) {
      list.push_back(to_json(finding));
    }
  }
  return list;
}

nlohmann::json to_json(const ExaminedDevice& device) {
  nlohmann::json object = device.facts ? nlohmann::json(*device.facts) : nlohmann::json::object();
  object["name"] = device.host.name;
  object["ranks"] = device.host.ranks;
  object["here"] = device.is_here;
  object["reached"] = device.shell.has_value() || device.facts.has_value();
  object["address"] = device.address;
  if (device.clock_offset_s) {
    object["clock_offset_s"] = *device.clock_offset_s;
    object["clock_error_s"] = device.clock_error_s;
  }
  for (const of_device::Address& own : device.addresses) {
    if (own.address == device.address) {
      object["interface"] = own.interface;
      if (own.bits_per_s) {
        object["negotiated_bits_per_s"] = *own.bits_per_s;
      }
    }
  }
  return object;
}

void print_json(const Examination& examination, const std::vector<Finding>& findings, bool well) {
  nlohmann::json devices = nlohmann::json::array();
  for (std::size_t i = 0; i < examination.devices.size(); ++i) {
    nlohmann::json device = to_json(examination.devices[i]);
    device["problems"] = findings_for(findings, static_cast<int>(i), true);
    device["warnings"] = findings_for(findings, static_cast<int>(i), false);
    devices.push_back(device);
  }
  nlohmann::json links = nlohmann::json::array();
  for (const ExaminedLink& link : examination.links) {
    nlohmann::json entry{{"from", examination.devices[static_cast<std::size_t>(link.a)].host.name},
                         {"to", examination.devices[static_cast<std::size_t>(link.b)].host.name}};
    if (link.problem.empty()) {
      entry["round_trip_s"] = link.round_trip_s;
      entry["forward_bytes_per_s"] = link.forward_bytes_per_s;
      entry["back_bytes_per_s"] = link.back_bytes_per_s;
    } else {
      entry["problem"] = link.problem;
    }
    links.push_back(entry);
  }
  const nlohmann::json all{{"well", well},
                           {"program", examination.program},
                           {"folder", examination.folder},
                           {"devices", devices},
                           {"links", links},
                           {"problems", findings_for(findings, -1, true)},
                           {"warnings", findings_for(findings, -1, false)}};
  fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

bool run_doctor(const DoctorCommand& command) {
  const Examination examination = examine({.program = program_path(),
                                           .version = program_sources(),
                                           .folder = std::filesystem::current_path().string(),
                                           .remote_shell = command.remote_shell,
                                           .hosts = read_host_file(command.hostfile)});
  const std::vector<Finding> findings = findings_of(examination);
  const auto problems = std::count_if(
      findings.begin(), findings.end(), [](const Finding& one) { return one.is_problem; });
  const bool well = problems == 0;
  if (command.json) {
    print_json(examination, findings, well);
    return well;
  }
  print_devices(examination);
  print_other_links(examination);
  print_findings(findings);
  const auto warnings = static_cast<Index>(findings.size()) - problems;
  fmt::print("\n{}{}\n",
             well ? "no problem" : counted(problems, "problem"),
             warnings > 0 ? ", " + counted(warnings, "warning") : "");
  return well;
}

}  // namespace tessera::engine
