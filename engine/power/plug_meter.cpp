#include "engine/power/plug_meter.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/power/http_request.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

using nlohmann::json;

// What a kind of plug is asked, with {} for the number of its switch, and where in its answer the
// watts are.
struct PlugKind {
  const char* name;
  const char* path;
  const char* watts;
};

constexpr PlugKind kFirstShelly{"shelly", "/meter/{}", "/power"};
constexpr PlugKind kShelly{"shelly", "/rpc/Switch.GetStatus?id={}", "/apower"};
constexpr PlugKind kTasmota{"tasmota", "/cm?cmnd=Status%2010", "/StatusSNS/ENERGY/Power"};

json answer(const HttpAddress& address,
            const std::string& path,
            double seconds,
            const std::stop_token& stop) {
  const std::string text = http_answer(address, path, seconds, stop);
  json value = json::parse(text, nullptr, false);
  if (!value.is_object()) {
    throw InputError(fmt::format(
        "{}{}: \"{}\" is not a JSON object", address.host, path, printable_start(text)));
  }
  return value;
}

PowerMeter plug_meter(const PlugKind& kind, const HttpAddress& address, double seconds) {
  MeterDescription description;
  description.source = kind.name;
  const std::string path = fmt::format(fmt::runtime(kind.path), address.id);
  return {description, [address, path, seconds, kind](const MeterQuery& query) {
            const json said = answer(address, path, seconds, query.stop);
            json::json_pointer watts(kind.watts);
            if (said.contains(watts) && said[watts].is_array()) {  // of several switches
              watts /= static_cast<std::size_t>(address.id);
            }
            if (!said.contains(watts) || !said[watts].is_number()) {
              throw InputError(fmt::format(
                  "{}{}: the answer has no number {}", address.host, path, watts.to_string()));
            }
            // The first generation of Shelly says so itself.
            if (said.contains("is_valid") && said["is_valid"] == false) {
              throw InputError(fmt::format(
                  "{}{}: the plug says that its reading is not valid", address.host, path));
            }
            return said[watts].get<double>();
          }};
}

}  // namespace

PowerMeter shelly_meter(const std::string& address, double seconds) {
  const HttpAddress plug = parse_http_address(address);
  const json about = answer(plug, "/shelly", seconds, {});
  const bool has_rpc = about.contains("gen") && about["gen"].is_number();
  return plug_meter(has_rpc ? kShelly : kFirstShelly, plug, seconds);
}

PowerMeter tasmota_meter(const std::string& address, double seconds) {
  return plug_meter(kTasmota, parse_http_address(address), seconds);
}

}  // namespace tessera::engine
