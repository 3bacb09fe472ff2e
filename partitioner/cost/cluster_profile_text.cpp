// The text form of a cluster profile: TOML, written so that a person can read and change it.

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <string>
#include <tuple>

#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/regular_file.h"
#include "partitioner/base/toml_reader.h"
#include "partitioner/cost/board_power.h"
#include "partitioner/cost/cluster_profile.h"
#include "partitioner/partition/partition.h"

namespace tessera::partitioner {

namespace {

constexpr Index kMostBytes = Index{16} << 20U;  // of the file

constexpr std::string_view kHeader =
    "# What the devices of a cluster can do. Device i, counted from 0, runs rank i; `names` lists\n"
    "# devices that are alike. Rates are per second, times end in _s; a rate of inf takes no "
    "time.\n"
    "# A pair of two bytes_per_s is forward and backward. `convolutions` are measured: seconds "
    "for\n"
    "# one image of rows x cols outputs.\n";

struct RateKey {
  const char* name;
  double DeviceProfile::*rate;
};

constexpr RateKey kRates[] = {
    {"memory_bytes_per_s", &DeviceProfile::memory_bytes_per_s},
    {"copied_bytes_per_s", &DeviceProfile::copied_bytes_per_s},
    {"send_bytes_per_s", &DeviceProfile::send_bytes_per_s},
    {"receive_bytes_per_s", &DeviceProfile::receive_bytes_per_s},
    {"direct_flops_per_s", &DeviceProfile::direct_flops_per_s},
    {"winograd_flops_per_s", &DeviceProfile::winograd_flops_per_s},
    {"updated_weights_per_s", &DeviceProfile::updated_weights_per_s},
};

struct PassRatesKey {
  const char* name;
  PassRates DeviceProfile::*rates;
  bool optional = false;  // older profiles lack it: then it takes no time
};

constexpr PassRatesKey kPassRatesKeys[] = {
    {"normalize_bytes_per_s", &DeviceProfile::normalize},
    {"activate_bytes_per_s", &DeviceProfile::activate},
    {"exponential_bytes_per_s", &DeviceProfile::exponential, true},
    {"pool_bytes_per_s", &DeviceProfile::pool},
    {"elementwise_bytes_per_s", &DeviceProfile::elementwise},
};

struct PointKey {
  const char* name;
  Index ConvolutionPoint::*number;
};

constexpr PointKey kPointNumbers[] = {
    {"channels", &ConvolutionPoint::channels},
    {"filters", &ConvolutionPoint::filters},
    {"size", &ConvolutionPoint::size},
    {"stride", &ConvolutionPoint::stride},
    {"groups", &ConvolutionPoint::groups},
    {"rows", &ConvolutionPoint::rows},
    {"cols", &ConvolutionPoint::cols},
};

constexpr Index kMostDevices = kMostRanks;
constexpr Index kMostSide = Index{1} << 31U;  // of a convolution
constexpr double kMostOperations = 1e18;
constexpr double kMostWatts = 1e6;
constexpr Index kMostCores = 4096;
constexpr Index kMostPoints = 1'000'000;  // of all devices

double operations(const ConvolutionPoint& point) {
  double product = 1;
  for (const Index factor :
       {point.channels, point.filters, point.size, point.size, point.rows, point.cols}) {
    product *= static_cast<double>(factor);
  }
  return product;
}

class ClusterReader {
 public:
  explicit ClusterReader(const std::string& name)
      : toml_(name, "a cluster profile", {"link", "device", "between", "all_reduce"}) {}

  [[nodiscard]] ClusterProfile cluster(const std::string& text) const {
    const toml::table table = toml_.parse(text);
    ClusterProfile result;
    Names names;
    for (const toml::table* device : toml_.tables(table, "device")) {
      add_devices(*device, result.devices, names);
    }
    if (result.devices.empty()) {
      toml_.fail(table, "no devices: describe them under [[device]]");
    }
    const toml::table& link = toml_.required_table(table, "link");
    toml_.check_keys(link, {"latency_s", "bytes_per_s"});
    result.link = link_of(link);
    for (const toml::table* pair : toml_.tables(table, "between")) {
      toml_.check_keys(*pair, {"from", "to", "latency_s", "bytes_per_s"});
      result.exceptions.push_back(
          {rank(*pair, "from", names), rank(*pair, "to", names), link_of(*pair)});
    }
    sort_exceptions(table, result.exceptions);
    for (const toml::table* point : toml_.tables(table, "all_reduce")) {
      toml_.check_keys(*point, {"devices", "bytes", "seconds"});
      result.all_reduces.push_back(
          {static_cast<int>(toml_.integer(*point, "devices", 1, kMostDevices)),
           toml_.integer(*point, "bytes", 0, kMostMemoryBytes),
           toml_.seconds(*point, "seconds")});
    }
    return result;
  }

 private:
  using Names = std::map<std::string, int>;  // devices

  // `taken` are the names of all devices so far.
  void add_devices(const toml::table& table,
                   std::vector<DeviceProfile>& devices,
                   Names& taken) const {
    toml_.check_keys(table,
                     {"names",
                      "memory_bytes",
                      "program_bytes",
                      "memory_bytes_per_s",
                      "message_s",
                      "first_message_s",
                      "copied_bytes_per_s",
                      "send_bytes_per_s",
                      "receive_bytes_per_s",
                      "direct_flops_per_s",
                      "winograd_flops_per_s",
                      "updated_weights_per_s",
                      "normalize_bytes_per_s",
                      "activate_bytes_per_s",
                      "exponential_bytes_per_s",
                      "pool_bytes_per_s",
                      "elementwise_bytes_per_s",
                      "convolutions",
                      "board",
                      "power"});
    DeviceProfile device;
    device.memory_bytes = toml_.integer(table, "memory_bytes", 1, kMostMemoryBytes);
    device.program_bytes = table.contains("program_bytes")
                               ? toml_.integer(table, "program_bytes", 0, kMostMemoryBytes)
                               : 0;
    device.message_s = toml_.seconds(table, "message_s");
    device.first_message_s =
        table.contains("first_message_s") ? toml_.seconds(table, "first_message_s") : 0;
    for (const RateKey& key : kRates) {
      device.*key.rate = toml_.rate(table, key.name);
    }
    for (const PassRatesKey& key : kPassRatesKeys) {
      if (!key.optional || table.contains(key.name)) {
        device.*key.rates = pass_rates(table, key.name);
      }
    }
    for (const toml::table* point : toml_.tables(table, "convolutions")) {
      device.convolutions.push_back(convolution_point(*point));
    }
    device.board = board(table);
    device.power = power(table);
    const toml::node& names = toml_.required(table, "names");
    if (!names.is_array() || names.as_array()->empty()) {
      toml_.fail(names, "`names` is not a list of names: expected strings in brackets");
    }
    expect_few(names, devices.size(), device.convolutions.size());
    for (const toml::node& name : *names.as_array()) {
      device.name = toml_.text(name, "names");
      if (!taken.emplace(device.name, static_cast<int>(devices.size())).second) {
        toml_.fail(
            name,
            fmt::format("`names` has \"{}\" for a second device", printable_start(device.name)));
      }
      devices.push_back(device);
    }
  }

  // Each device has its own copy of the points.
  void expect_few(const toml::node& names, std::size_t before, std::size_t points) const {
    const auto count = static_cast<Index>(names.as_array()->size());
    if (static_cast<Index>(before) + count > kMostDevices ||
        count * static_cast<Index>(points) > kMostPoints) {
      toml_.fail(names,
                 fmt::format("more than {} devices, or {} `convolutions` of all together",
                             kMostDevices,
                             kMostPoints));
    }
  }

  [[nodiscard]] PassRates pass_rates(const toml::table& table, const char* key) const {
    const toml::node& node = toml_.required(table, key);
    if (!node.is_table()) {
      toml_.fail(node, fmt::format("`{}` is not {{ forward = ..., backward = ... }}", key));
    }
    toml_.check_keys(*node.as_table(), {"forward", "backward"});
    return {toml_.rate(*node.as_table(), "forward"), toml_.rate(*node.as_table(), "backward")};
  }

  [[nodiscard]] ConvolutionPoint convolution_point(const toml::table& table) const {
    toml_.check_keys(table,
                     {"kernel",
                      "channels",
                      "filters",
                      "size",
                      "stride",
                      "groups",
                      "rows",
                      "cols",
                      "forward_s",
                      "backward_data_s",
                      "backward_weights_s"});
    ConvolutionPoint point;
    const toml::node& name = toml_.required(table, "kernel");
    const auto kernel = kernel_named(toml_.text(name, "kernel"));
    if (!kernel) {
      toml_.fail(name, "`kernel` is unknown, expected direct, winograd2, winograd4 or reference");
    }
    point.kernel = *kernel;
    for (const PointKey& key : kPointNumbers) {
      point.*key.number = toml_.integer(table, key.name, 1, kMostSide);
    }
    if (operations(point) > kMostOperations) {
      toml_.fail(table,
                 fmt::format("a convolution of more than {:.0e} operations", kMostOperations));
    }
    if (point.channels % point.groups != 0 || point.filters % point.groups != 0) {
      toml_.fail(table, "`groups` does not divide `channels` and `filters`");
    }
    point.forward_s = toml_.positive_seconds(table, "forward_s");
    point.backward_data_s = toml_.positive_seconds(table, "backward_data_s");
    point.backward_weights_s = toml_.positive_seconds(table, "backward_weights_s");
    return point;
  }

  // `table` is a device's.
  [[nodiscard]] std::string board(const toml::table& table) const {
    const toml::node* node = table.get("board");
    if (node == nullptr) {
      return "";
    }
    std::string key = toml_.text(*node, "board");
    try {
      (void)board_power(key);
    } catch (const InputError& error) {
      toml_.fail(*node, fmt::format("`board`: {}", error.what()));
    }
    return key;
  }

  [[nodiscard]] std::optional<PowerProfile> power(const toml::table& table) const {
    const toml::node* node = table.get("power");
    if (node == nullptr) {
      return std::nullopt;
    }
    if (!node->is_table()) {
      toml_.fail(*node, "`power` is not a table: write it under [device.power]");
    }
    const toml::table& power = *node->as_table();
    toml_.check_keys(power,
                     {"source",
                      "scope",
                      "estimated",
                      "relative_error",
                      "idle_w",
                      "busy_w",
                      "sending_w",
                      "receiving_w"});
    PowerProfile profile;
    profile.source = toml_.text(toml_.required(power, "source"), "source");
    const toml::node& scope = toml_.required(power, "scope");
    const auto known = power_scope_named(toml_.text(scope, "scope"));
    if (!known) {
      toml_.fail(scope, "`scope` is unknown, expected processor, rails or device");
    }
    profile.scope = *known;
    profile.estimated = toml_.flag(power, "estimated");
    profile.relative_error = optional_number(power, "relative_error", 1);
    profile.idle_w = toml_.number_up_to(toml_.required(power, "idle_w"), "idle_w", kMostWatts);
    profile.busy_w = busy_w(power);
    profile.sending_w = optional_number(power, "sending_w", kMostWatts);
    profile.receiving_w = optional_number(power, "receiving_w", kMostWatts);
    return profile;
  }

  [[nodiscard]] std::vector<double> busy_w(const toml::table& power) const {
    const toml::node& node = toml_.required(power, "busy_w");
    if (!node.is_array() || node.as_array()->empty() || std::ssize(*node.as_array()) > kMostCores) {
      toml_.fail(node, "`busy_w` is not a list of watts, with 1, 2, ... cores that compute");
    }
    std::vector<double> watts;
    for (const toml::node& number : *node.as_array()) {
      watts.push_back(toml_.number_up_to(number, "busy_w", kMostWatts));
    }
    return watts;
  }

  [[nodiscard]] std::optional<double> optional_number(const toml::table& table,
                                                      const char* key,
                                                      double most) const {
    const toml::node* node = table.get(key);
    return node == nullptr ? std::nullopt : std::optional(toml_.number_up_to(*node, key, most));
  }

  [[nodiscard]] LinkProfile link_of(const toml::table& table) const {
    return {toml_.seconds(table, "latency_s"), toml_.rate(table, "bytes_per_s")};
  }

  [[nodiscard]] int rank(const toml::table& table, const char* key, const Names& names) const {
    const std::string name = toml_.text(toml_.required(table, key), key);
    const auto found = names.find(name);
    if (found == names.end()) {
      toml_.fail(
          *table.get(key),
          fmt::format("`{}` is \"{}\", but no device has that name", key, printable_start(name)));
    }
    return found->second;
  }

  void sort_exceptions(const toml::table& table, std::vector<LinkException>& links) const {
    const auto pair = [](const LinkException& link) { return std::tuple(link.from, link.to); };
    std::sort(links.begin(), links.end(), [&](const auto& a, const auto& b) {
      return pair(a) < pair(b);
    });
    const auto twice =
        std::adjacent_find(links.begin(), links.end(), [&](const auto& a, const auto& b) {
          return pair(a) == pair(b);
        });
    if (twice != links.end()) {
      toml_.fail(*table.get("between"), "a pair of devices is listed twice under [[between]]");
    }
  }

  TomlReader toml_;
};

std::string convolution_line(const ConvolutionPoint& point) {
  std::string line = fmt::format("  {{ kernel = \"{}\"", name_of(point.kernel));
  for (const PointKey& key : kPointNumbers) {
    line += fmt::format(", {} = {}", key.name, point.*key.number);
  }
  return line + fmt::format(", forward_s = {}, backward_data_s = {}, backward_weights_s = {} }},\n",
                            point.forward_s,
                            point.backward_data_s,
                            point.backward_weights_s);
}

std::string power_text(const PowerProfile& power) {
  std::string text = fmt::format(
      "\n[device.power]  # idle, with 1, 2, ... busy cores, while sending or receiving\nsource = "
      "{}\nscope = \"{}\"\nestimated = {}\n",
      toml_quoted(power.source),
      name_of(power.scope),
      power.estimated);
  const auto add = [&](const char* key, const std::optional<double>& value) {
    text += value ? fmt::format("{} = {}\n", key, *value) : "";
  };
  add("relative_error", power.relative_error);
  add("idle_w", power.idle_w);
  text += fmt::format("busy_w = [{}]\n", fmt::join(power.busy_w, ", "));
  add("sending_w", power.sending_w);
  add("receiving_w", power.receiving_w);
  return text;
}

std::string device_text(const DeviceProfile& device, const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  quoted.reserve(names.size());
  for (const std::string& name : names) {
    quoted.push_back(toml_quoted(name));
  }
  std::string text = fmt::format(
      "\n[[device]]\nnames = [{}]\nmemory_bytes = {}\nprogram_bytes = {}\nmessage_s = {}\n",
      fmt::join(quoted, ", "),
      device.memory_bytes,
      device.program_bytes,
      device.message_s);
  if (device.first_message_s > 0) {
    text += fmt::format("first_message_s = {}\n", device.first_message_s);
  }
  for (const RateKey& key : kRates) {
    text += fmt::format("{} = {}\n", key.name, device.*key.rate);
  }
  for (const PassRatesKey& key : kPassRatesKeys) {
    const PassRates& rates = device.*key.rates;
    text += fmt::format("{} = {{ forward = {}, backward = {} }}\n",
                        key.name,
                        rates.forward_bytes_per_s,
                        rates.backward_bytes_per_s);
  }
  if (!device.convolutions.empty()) {
    text += "convolutions = [\n";
    for (const ConvolutionPoint& point : device.convolutions) {
      text += convolution_line(point);
    }
    text += "]\n";
  }
  if (!device.board.empty()) {
    text += fmt::format("board = {}\n", toml_quoted(device.board));
  }
  return device.power ? text + power_text(*device.power) : text;
}

bool alike(const DeviceProfile& a, const DeviceProfile& b) {
  DeviceProfile renamed = a;
  renamed.name = b.name;
  return renamed == b;
}

}  // namespace

std::string to_text(const ClusterProfile& cluster) {
  std::string text(kHeader);
  text += fmt::format("\n[link]\nlatency_s = {}\nbytes_per_s = {}\n",
                      cluster.link.latency_s,
                      cluster.link.bytes_per_s);
  for (auto first = cluster.devices.begin(); first != cluster.devices.end();) {
    std::vector<std::string> names;
    auto last = first;
    for (; last != cluster.devices.end() && alike(*first, *last); ++last) {
      names.push_back(last->name);
    }
    text += device_text(*first, names);
    first = last;
  }
  for (const LinkException& pair : cluster.exceptions) {
    text += fmt::format("\n[[between]]\nfrom = {}\nto = {}\nlatency_s = {}\nbytes_per_s = {}\n",
                        toml_quoted(cluster.device(pair.from).name),
                        toml_quoted(cluster.device(pair.to).name),
                        pair.link.latency_s,
                        pair.link.bytes_per_s);
  }
  for (const AllReducePoint& point : cluster.all_reduces) {
    text += fmt::format("\n[[all_reduce]]\ndevices = {}\nbytes = {}\nseconds = {}\n",
                        point.devices,
                        point.bytes,
                        point.seconds);
  }
  return text;
}

ClusterProfile parse_cluster_profile(const std::string& text, const std::string& name) {
  return ClusterReader(name).cluster(text);
}

ClusterProfile read_cluster_profile(const std::filesystem::path& path) {
  return parse_cluster_profile(
      read_regular_file(path, "a cluster profile, as `tessera probe` writes one", kMostBytes),
      path.string());
}

}  // namespace tessera::partitioner
