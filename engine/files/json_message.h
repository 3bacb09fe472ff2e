// A message is one of the structs of a std::variant; on its way it is a line of JSON, of which one
// member tells which struct it is. For the sources of protocols alone: nobody else sees the JSON.

#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "engine/files/json_text.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

// Of each variant: `kMember`, the name of that member, and `kNames`, its value for each struct, in
// their order.
template <class Message>
struct MessageKinds;

template <class Message>
nlohmann::json json_of_message(const Message& message) {
  using Kinds = MessageKinds<Message>;
  static_assert(std::variant_size_v<Message> == Kinds::kNames.size());
  nlohmann::json object = std::visit(
      [](const auto& one) {
        if constexpr (std::is_empty_v<std::decay_t<decltype(one)>>) {
          return nlohmann::json::object();
        } else {
          return nlohmann::json(one);
        }
      },
      message);
  object[Kinds::kMember] = Kinds::kNames[message.index()];
  return object;
}

// Throws a json::exception or an InputError.
template <class Message, std::size_t Kind = 0>
Message message_of_json(const nlohmann::json& object) {
  using Kinds = MessageKinds<Message>;
  if constexpr (Kind == std::variant_size_v<Message>) {
    throw InputError("no message has this kind");
  } else if (object.at(Kinds::kMember).template get_ref<const std::string&>() !=
             Kinds::kNames[Kind]) {
    return message_of_json<Message, Kind + 1>(object);
  } else if constexpr (std::is_empty_v<std::variant_alternative_t<Kind, Message>>) {
    return std::variant_alternative_t<Kind, Message>();
  } else {
    return object.get<std::variant_alternative_t<Kind, Message>>();
  }
}

// What `read` makes of the line; nothing where that is no JSON, or not what was expected.
template <class Read>
auto read_json_line(const std::string& line, const Read& read)
    -> std::optional<decltype(read(nlohmann::json()))> {
  if (!is_shallow_json(line)) {
    return std::nullopt;
  }
  try {
    return read(nlohmann::json::parse(line));
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

template <class Message>
std::optional<Message> message_of_line(const std::string& line) {
  return read_json_line(
      line, [](const nlohmann::json& object) { return message_of_json<Message>(object); });
}

}  // namespace tessera::engine
