#include "engine/power/meter_spec.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>

#include "engine/system/host_name.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/spelling.h"

namespace tessera::engine {

namespace {

constexpr std::string_view kCluster = "cluster";

enum class Argument { Never, Maybe, Always };

struct Kind {
  MeterKind kind;
  std::string_view name;
  Argument argument;
  const char* what;  // the argument is
};

constexpr std::array<Kind, 10> kKinds{{
    {MeterKind::Automatic, "auto", Argument::Never, ""},
    {MeterKind::None, "none", Argument::Never, ""},
    {MeterKind::Rapl, "rapl", Argument::Never, ""},
    {MeterKind::Hwmon, "hwmon", Argument::Never, ""},
    {MeterKind::Pmic, "pmic", Argument::Never, ""},
    {MeterKind::Command, "command", Argument::Always, "a command that prints watts"},
    {MeterKind::Shelly, "shelly", Argument::Always, "the plug's address, http://10.0.0.7"},
    {MeterKind::Tasmota, "tasmota", Argument::Always, "the plug's address, http://10.0.0.7"},
    {MeterKind::File, "file", Argument::Always, "a file of readings"},
    {MeterKind::Table, "table", Argument::Maybe, "a board"},
}};

const Kind& kind_of(MeterKind kind) {
  return *std::find_if(
      kKinds.begin(), kKinds.end(), [kind](const Kind& known) { return known.kind == kind; });
}

[[noreturn]] void refuse_spec(const std::string& text, const std::string& message) {
  throw InputError(fmt::format("\"{}\": {}", printable_start(text), message));
}

const Kind& kind_named(const std::string& text, std::string_view name) {
  std::vector<std::string_view> names;
  for (const Kind& kind : kKinds) {
    if (kind.name == name) {
      return kind;
    }
    names.push_back(kind.name);
  }
  refuse_spec(text,
              fmt::format("there is no such kind of meter{} (expected {})",
                          suggestion(name, names),
                          fmt::join(names, ", ")));
}

// Whether two meters measure the same.
bool same_place(const MeterSpec& a, const MeterSpec& b) {
  return a.cluster == b.cluster && a.host == b.host;
}

bool is_one_plug(const MeterSpec& spec) {
  return spec.kind == MeterKind::Shelly || spec.kind == MeterKind::Tasmota;
}

[[noreturn]] void refuse(const MeterSpec& spec, const std::string& message) {
  throw InputError(fmt::format("--meter {}: {}", to_text(spec), message));
}

void expect_places(const std::vector<MeterSpec>& specs, const std::vector<std::string>& hosts) {
  const bool several =
      std::any_of(hosts.begin(), hosts.end(), [&](const auto& host) { return host != hosts[0]; });
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const MeterSpec& spec = specs[i];
    if (std::any_of(specs.begin(),
                    specs.begin() + static_cast<std::ptrdiff_t>(i),
                    [&](auto& other) { return same_place(other, spec); })) {
      refuse(spec, "a second meter of the same place");
    }
    if (!spec.host.empty() && std::find(hosts.begin(), hosts.end(), spec.host) == hosts.end()) {
      refuse(spec,
             fmt::format("no rank runs on a machine called \"{}\"{}",
                         printable_start(spec.host),
                         suggestion(spec.host, {hosts.begin(), hosts.end()})));
    }
    if (several && is_one_plug(spec) && spec.host.empty() && !spec.cluster) {
      refuse(spec,
             fmt::format("say what it measures: {}={} or cluster={}",
                         printable_start(hosts[0]),
                         to_text(spec),
                         to_text(spec)));
    }
  }
}

}  // namespace

MeterSpec parse_meter(const std::string& text) {
  MeterSpec spec;
  std::string_view rest = text;
  const std::size_t equals = rest.find('=');
  if (equals < rest.find(':')) {
    spec.host = rest.substr(0, equals);
    rest.remove_prefix(equals + 1);
    if (spec.host.empty()) {
      refuse_spec(text, "no host before \"=\"");
    }
    if (spec.host == kCluster) {
      spec.cluster = true;
      spec.host.clear();
    }
  }
  const std::size_t colon = std::min(rest.find(':'), rest.size());
  const Kind& kind = kind_named(text, rest.substr(0, colon));
  spec.kind = kind.kind;
  spec.argument = rest.substr(std::min(colon + 1, rest.size()));
  if (kind.argument == Argument::Never && colon < rest.size()) {
    refuse_spec(text, fmt::format("{} takes no argument", kind.name));
  }
  if (spec.argument.empty() && (kind.argument == Argument::Always || colon < rest.size())) {
    refuse_spec(text, fmt::format("expected {} after \"{}:\"", kind.what, kind.name));
  }
  if (spec.cluster && kind.argument != Argument::Always) {
    refuse_spec(
        text,
        "no machine has such a meter of a whole cluster (a command, a plug or a file may be one)");
  }
  return spec;
}

std::string to_text(const MeterSpec& spec) {
  std::string text = spec.cluster ? std::string(kCluster) : spec.host;
  text += text.empty() ? "" : "=";
  text += kind_of(spec.kind).name;
  return spec.argument.empty() ? text : text + ":" + spec.argument;
}

RankMeters meters_of_rank(const std::vector<MeterSpec>& specs,
                          const std::vector<std::string>& hosts,
                          int rank) {
  expect_places(specs, hosts);
  const std::string& host = hosts[static_cast<std::size_t>(rank)];
  const bool is_first = is_first_on_host(hosts, rank);
  RankMeters meters;
  meters.board.kind = is_first ? MeterKind::Automatic : MeterKind::None;
  for (const MeterSpec& spec : specs) {
    if (spec.cluster && rank == 0) {
      meters.cluster = spec;
    }
    // A meter of this host goes before one of every machine.
    if (!spec.cluster && is_first &&
        (spec.host == host || (spec.host.empty() && meters.board.host.empty()))) {
      meters.board = spec;
    }
  }
  return meters;
}

}  // namespace tessera::engine
