#include "engine/supervisor/protocol.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <sodium.h>
#include <type_traits>
#include <utility>

#include "engine/files/json_text.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

using nlohmann::json;

bool travels(std::string_view variable) {
  constexpr std::array kFamilies{"OMP_", "GOMP_", "UCX_", "MPICH_", "MPIR_", "TESSERA_"};
  constexpr std::array<std::string_view, 5> kAgents{rank_variable::kStateFolder,
                                                    rank_variable::kAgent,
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

namespace {

// Messages by the member that tells which one it is, and its value for each, in their order.
template <class Message>
struct Kinds;
template <>
struct Kinds<of_rank::Message> {
  static constexpr const char* kMember = "is";
  static constexpr std::array kNames{"beat", "works", "stuck", "phase", "step", "saved", "silent"};
};
template <>
struct Kinds<to_rank::Message> {
  static constexpr const char* kMember = "do";
  static constexpr std::array kNames{"pause"};
};
template <>
struct Kinds<to_agent::Message> {
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
struct Kinds<to_supervisor::Message> {
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

template <class Message>
json json_of(const Message& message) {
  static_assert(std::variant_size_v<Message> == Kinds<Message>::kNames.size());
  json object = std::visit(
      [](const auto& one) {
        if constexpr (std::is_empty_v<std::decay_t<decltype(one)>>) {
          return json::object();
        } else {
          return json(one);
        }
      },
      message);
  object[Kinds<Message>::kMember] = Kinds<Message>::kNames[message.index()];
  return object;
}

template <class One>
One read_as(const json& object) {
  if constexpr (std::is_empty_v<One>) {
    return {};
  } else {
    return object.get<One>();
  }
}

// Throws a json::exception or an InputError.
template <class Message, std::size_t... Index>
Message read_message(const json& object, std::index_sequence<Index...> /*kinds*/) {
  const auto kind = object.at(Kinds<Message>::kMember).template get<std::string>();
  std::optional<Message> found;
  ((kind == Kinds<Message>::kNames[Index]
        ? (void)(found = read_as<std::variant_alternative_t<Index, Message>>(object))
        : void()),
   ...);
  return found ? std::move(*found) : throw InputError("no message has this kind");
}

template <class Message>
Message read_message(const json& object) {
  return read_message<Message>(object, std::make_index_sequence<std::variant_size_v<Message>>());
}

}  // namespace

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
    Start, world, ranks, size, again, forget, files, folder, typed, words)
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
  object = {{"world", status.world}, {"rank", status.rank}, {"status", json_of(status.status)}};
}

void from_json(const json& object, Status& status) {
  status = {object.at("world").get<Index>(),
            object.at("rank").get<int>(),
            read_message<of_rank::Message>(object.at("status"))};
}
}  // namespace to_supervisor

std::string line_of(const of_rank::Message& message) {
  return json_of(message).dump();
}

std::string line_of(const to_rank::Message& message) {
  return json_of(message).dump();
}

std::string line_of(const to_agent::Message& message) {
  return json_of(message).dump();
}

std::string line_of(const to_supervisor::Message& message) {
  return json_of(message).dump();
}

template <class Message>
std::optional<Message> message_in(const std::string& line) {
  if (!is_shallow_json(line)) {
    return std::nullopt;
  }
  try {
    return read_message<Message>(json::parse(line));
  } catch (const json::exception&) {
    return std::nullopt;
  } catch (const InputError&) {
    return std::nullopt;
  }
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
