#include "engine/power/plug_meter.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/power/http_request.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

using nlohmann::json;

// A question to a plug, and where in its answer the watts are.
struct Question {
  HttpAddress address;
  std::string path;
  json::json_pointer watts;
  double seconds = 1;
};

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

// A plug of several switches has a list of numbers.
double watts_in(const Question& question, const json& answer) {
  const json::json_pointer of_switch =
      question.watts / static_cast<std::size_t>(question.address.id);
  const bool listed = answer.contains(question.watts) && answer[question.watts].is_array();
  const json::json_pointer& place = listed ? of_switch : question.watts;
  if (!answer.contains(place) || !answer[place].is_number()) {
    throw InputError(fmt::format("{}{}: the answer has no number {}",
                                 question.address.host,
                                 question.path,
                                 place.to_string()));
  }
  // The first generation of Shelly says so itself.
  if (answer.contains("is_valid") && answer["is_valid"] == false) {
    throw InputError(fmt::format(
        "{}{}: the plug says that its reading is not valid", question.address.host, question.path));
  }
  return answer[place].get<double>();
}

PowerMeter plug_meter(const char* source, const Question& question) {
  MeterDescription description;
  description.source = source;
  return {description, [question](const MeterQuery& query) {
            return watts_in(question,
                            answer(question.address, question.path, question.seconds, query.stop));
          }};
}

}  // namespace

PowerMeter shelly_meter(const std::string& address, double seconds) {
  const HttpAddress plug = parse_http_address(address);
  const json about = answer(plug, "/shelly", seconds, {});
  const bool has_rpc = about.contains("gen") && about["gen"].is_number();
  return plug_meter(
      "shelly",
      has_rpc
          ? Question{plug,
                     fmt::format("/rpc/Switch.GetStatus?id={}", plug.id),
                     json::json_pointer("/apower"),
                     seconds}
          : Question{
                plug, fmt::format("/meter/{}", plug.id), json::json_pointer("/power"), seconds});
}

PowerMeter tasmota_meter(const std::string& address, double seconds) {
  return plug_meter("tasmota",
                    {parse_http_address(address),
                     "/cm?cmnd=Status%2010",
                     json::json_pointer("/StatusSNS/ENERGY/Power"),
                     seconds});
}

}  // namespace tessera::engine
