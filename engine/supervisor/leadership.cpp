#include "engine/supervisor/leadership.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <nlohmann/json.hpp>

#include "engine/files/atomic_file.h"
#include "engine/files/json_text.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {
constexpr double kMilliseconds = 1000;
}  // namespace

bool is_there(const HeardSupervisor& heard, double now_s, double lately_s) {
  const bool lately = heard.heard_s <= now_s && now_s - heard.heard_s < lately_s;
  return lately && (heard.agent <= 0 || ::kill(heard.agent, 0) == 0 || errno != ESRCH);
}

Claim judged(const SupervisorId& mine,
             bool leads,
             const SupervisorId& newest,
             const std::optional<HeardSupervisor>& heard) {
  const bool is_newest =
      newest.number.empty() || newest.number == mine.number || (leads && mine > newest);
  if (newest.generation > mine.generation || (newest.generation == mine.generation && !is_newest)) {
    return Claim::Superseded;
  }
  if (!heard || heard->id.number == mine.number) {
    return Claim::Granted;
  }
  return heard->leads || heard->id > mine ? Claim::Heard : Claim::Granted;
}

Index turn_to_take_over(Index place,
                        Index devices,
                        const RecordAge& told,
                        const std::optional<RecordAge>& here) {
  constexpr Index kMostRounds = 5;  // that the oldest wait
  const Index supervisors_since = here ? told.generation - here->generation : 0;
  const Index rounds =
      here && *here >= told ? 0 : std::clamp<Index>(supervisors_since, 1, kMostRounds);
  return place - 1 + rounds * devices;
}

void write_heard(const std::filesystem::path& file, const HeardSupervisor& heard) {
  try {
    write_atomically(file,
                     nlohmann::json{{"generation", heard.id.generation},
                                    {"supervisor", heard.id.number},
                                    {"leads", heard.leads ? 1 : 0},
                                    {"agent", heard.agent},
                                    {"heard_ms", static_cast<Index>(heard.heard_s * kMilliseconds)}}
                             .dump() +
                         "\n");
  } catch (const InputError&) {
    // No rank has been here, or the run has ended.
  }
}

std::optional<HeardSupervisor> read_heard(const std::filesystem::path& file) {
  const auto heard = nlohmann::json::parse(read_json_text(file).value_or(""), nullptr, false);
  try {
    return HeardSupervisor{
        {heard.at("generation").get<Index>(), heard.at("supervisor").get<std::string>()},
        heard.at("leads").get<int>() != 0,
        heard.at("heard_ms").get<double>() / kMilliseconds,
        heard.at("agent").get<pid_t>()};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace tessera::engine
