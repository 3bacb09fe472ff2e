#include "engine/supervisor/protocol.h"

#include <algorithm>
#include <array>
#include <sodium.h>

#include "engine/files/json_message.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

using nlohmann::json;

bool travels(std::string_view variable) {
  constexpr std::array kFamilies{"OMP_", "GOMP_", "UCX_", "MPICH_", "MPIR_", "TESSERA_"};
  constexpr std::array<std::string_view, 6> kAgents{rank_variable::kStateFolder,
                                                    rank_variable::kAgent,
                                                    rank_variable::kRequest,
                                                    rank_variable::kCommand,
                                                    rank_variable::kFaults,
                                                    rank_variable::kStartedAgain};
  if (std::find(kAgents.begin(), kAgents.end(), variable) != kAgents.end()) {
    return false;
  }
  const bool of_family = std::any_of(kFamilies.begin(), kFamilies.end(), [&](auto family) {
    return variable.starts_with(family);
  });
  return of_family || variable == "LANG" || variable.starts_with("LC_");
}

template <>
struct MessageKinds<of_rank::Message> {
  static constexpr const char* kMember = "is";
  static constexpr std::array kNames{"beat", "works", "stuck", "phase", "step", "saved", "silent"};
};
template <>
struct MessageKinds<to_rank::Message> {
  static constexpr const char* kMember = "do";
  static constexpr std::array kNames{"pause"};
};
template <>
struct MessageKinds<to_agent::Message> {
  static constexpr const char* kMember = "do";
  static constexpr std::array kNames{"beat",
                                     "hello",
                                     "start",
                                     "kill",
                                     "wait",
                                     "record",
                                     "signal",
                                     "pmi",
                                     "pause",
                                     "look",
                                     "mirror",
                                     "end"};
};
template <>
struct MessageKinds<to_supervisor::Message> {
  static constexpr const char* kMember = "is";
  static constexpr std::array kNames{"beat",
                                     "hello",
                                     "heard",
                                     "superseded",
                                     "finished",
                                     "stopped",
                                     "problem",
                                     "ending",
                                     "look",
                                     "pmi",
                                     "status",
                                     "late",
                                     "exit"};
};

NLOHMANN_JSON_SERIALIZE_ENUM(RankPhase,
                             {{RankPhase::Setup, "setup"},
                              {RankPhase::Steps, "steps"},
                              {RankPhase::Test, "test"},
                              {RankPhase::Saving, "saving"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(PmiLine, world, rank, line)

namespace of_rank {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Phase, phase, steps, bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Step, step, last)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Silent, ranks)
}  // namespace of_rank

namespace to_agent {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(
    Hello, run, host, ranks, limit_ms, folder, environment, place, takes_over, leads, record)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(
    Start, world, ranks, size, again, forget, request, typed, words)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Record, record)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Signal, signal)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Pause, world)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Look, file)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(End, remove)

void to_json(json& object, const FilePart& part) {
  std::string bytes(sodium_base64_ENCODED_LEN(part.bytes.size(), sodium_base64_VARIANT_ORIGINAL),
                    '\0');
  sodium_bin2base64(bytes.data(),
                    bytes.size(),
                    part.bytes.data(),
                    part.bytes.size(),
                    sodium_base64_VARIANT_ORIGINAL);
  bytes.pop_back();
  object = {{"file", part.file},
            {"offset", part.offset},
            {"appends", part.appends},
            {"last", part.last},
            {"bytes", bytes}};
}

void from_json(const json& object, FilePart& part) {
  const auto text = object.at("bytes").get<std::string>();
  std::size_t length = 0;
  part = {object.at("file").get<std::string>(),
          object.value("offset", Index{0}),
          object.value("appends", false),
          object.value("last", false),
          std::vector<unsigned char>(text.size() / 4 * 3 + 3)};
  if (sodium_base642bin(part.bytes.data(),
                        part.bytes.size(),
                        text.data(),
                        text.size(),
                        nullptr,
                        &length,
                        nullptr,
                        sodium_base64_VARIANT_ORIGINAL) != 0) {
    throw InputError("a part of a file has come damaged");
  }
  part.bytes.resize(length);
}
}  // namespace to_agent

namespace to_supervisor {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Hello, version, host, folder_there)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Problem, text)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Ending, signal)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Look, file, there)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Late, world, rank, silent_ms)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Exit, world, rank, code, signal, limits, memory)

void to_json(json& object, const Status& status) {
  object = {
      {"world", status.world}, {"rank", status.rank}, {"status", json_of_message(status.status)}};
}

void from_json(const json& object, Status& status) {
  status = {object.at("world").get<Index>(),
            object.at("rank").get<int>(),
            message_of_json<of_rank::Message>(object.at("status"))};
}
}  // namespace to_supervisor

std::string line_of(const of_rank::Message& message) {
  return json_of_message(message).dump();
}

std::string line_of(const to_rank::Message& message) {
  return json_of_message(message).dump();
}

std::string line_of(const to_agent::Message& message) {
  return json_of_message(message).dump();
}

std::string line_of(const to_supervisor::Message& message) {
  return json_of_message(message).dump();
}

template <class Message>
std::optional<Message> message_in(const std::string& line) {
  return message_of_line<Message>(line);
}
template std::optional<of_rank::Message> message_in(const std::string& line);
template std::optional<to_rank::Message> message_in(const std::string& line);
template std::optional<to_agent::Message> message_in(const std::string& line);
template std::optional<to_supervisor::Message> message_in(const std::string& line);

std::string text_of_words(const std::vector<std::string>& words) {
  return json(words).dump();
}

std::vector<std::string> words_in(const std::string& text) {
  const json words = json::parse(text, nullptr, false);
  const bool are_words =
      words.is_array() &&
      std::all_of(words.begin(), words.end(), [](const json& word) { return word.is_string(); });
  return are_words ? words.get<std::vector<std::string>>() : std::vector<std::string>();
}

}  // namespace tessera::engine
