#include "engine/cluster/protocol.h"

#include <array>

#include "engine/files/json_message.h"

namespace tessera::engine {

using nlohmann::json;

template <>
struct MessageKinds<to_device::Question> {
  static constexpr const char* kMember = "do";
  static constexpr std::array kNames{"facts", "resolve", "time", "listen", "connect"};
};

namespace {

constexpr std::array kStorages{Storage::Unknown,
                               Storage::Disk,
                               Storage::Card,
                               Storage::Usb,
                               Storage::Network,
                               Storage::Memory};

// Calls `visit` with the name and the value of each.
template <class Facts, class Visit>
void for_each_fact(Facts& facts, const Visit& visit) {
  visit("host_name", facts.host_name);
  visit("boot", facts.boot);
  visit("version", facts.version);
  visit("mpi", facts.mpi);
  visit("architecture", facts.architecture);
  visit("word_bits", facts.word_bits);
  visit("has_launcher", facts.has_launcher);
  visit("memory_bytes", facts.memory_bytes);
  visit("free_memory_bytes", facts.free_memory_bytes);
  visit("swap_bytes", facts.swap_bytes);
  visit("swaps_to_card", facts.swaps_to_card);
  visit("processors", facts.processors);
  visit("load", facts.load);
  visit("folder_exists", facts.folder_exists);
  visit("folder_writable", facts.folder_writable);
  visit("folder_free_bytes", facts.folder_free_bytes);
  visit("storage", facts.storage);
  visit("shared_memory_free_bytes", facts.shared_memory_free_bytes);
  visit("governor", facts.governor);
  visit("temperature_c", facts.temperature_c);
  visit("throttled", facts.throttled);
}

void put(json& object, const char* name, Storage storage) {
  object[name] = name_of_storage(storage);
}

template <class Value>
void put(json& object, const char* name, const Value& value) {
  object[name] = value;
}

template <class Value>
void put(json& object, const char* name, const std::optional<Value>& value) {
  if (value) {
    object[name] = *value;
  }
}

void take(const json& object, Storage& storage) {
  for (const Storage one : kStorages) {
    storage = object == name_of_storage(one) ? one : storage;
  }
}

void take(const json& object, std::string& value) {
  value = object.is_string() ? object.get<std::string>() : value;
}

void take(const json& object, bool& value) {
  value = object.is_boolean() ? object.get<bool>() : value;
}

template <class Number>
bool is_a(const json& object) {
  return std::is_integral_v<Number> ? object.is_number_integer() : object.is_number();
}

template <class Number>
void take(const json& object, Number& value) {
  value = is_a<Number>(object) ? object.get<Number>() : value;
}

template <class Number>
void take(const json& object, std::optional<Number>& value) {
  value = is_a<Number>(object) ? object.get<Number>() : value;
}

}  // namespace

void to_json(json& object, const DeviceFacts& facts) {
  object = json::object();
  for_each_fact(facts, [&](const char* name, const auto& value) { put(object, name, value); });
}

void from_json(const json& object, DeviceFacts& facts) {
  for_each_fact(facts, [&](const char* name, auto& value) {
    if (const auto found = object.find(name); found != object.end()) {
      take(*found, value);
    }
  });
}

namespace to_device {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Facts, folder)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Resolve, names)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Listen, address, token)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Connect, address, port, token)
}  // namespace to_device

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LinkRates,
                                                round_trip_s,
                                                to_bytes_per_s,
                                                from_bytes_per_s)

namespace of_device {
void to_json(json& object, const Address& one) {
  object = {{"address", one.address}, {"interface", one.interface}, {"wireless", one.wireless}};
  put(object, "bits_per_s", one.bits_per_s);
}

void from_json(const json& object, Address& one) {
  one = {object.value("address", ""), object.value("interface", ""), {}, false};
  one.wireless = object.value("wireless", false);
  if (const double bits_per_s = object.value("bits_per_s", 0.0); bits_per_s > 0) {
    one.bits_per_s = bits_per_s;
  }
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Resolved, names, interfaces)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Time, time_s)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Listening, port, problem)

void to_json(json& object, const Tried& tried) {
  object = tried.rates;
  object["problem"] = tried.problem;
}

void from_json(const json& object, Tried& tried) {
  tried = {object.get<LinkRates>(), object.value("problem", "")};
}
}  // namespace of_device

namespace {

// Names of files and interfaces may be anything.
std::string line_with(const json& object) {
  return object.dump(-1, ' ', true, json::error_handler_t::replace);
}

}  // namespace

std::string line_of(const to_device::Question& question) {
  return line_with(json_of_message(question));
}

std::string line_of(const of_device::Answer& answer) {
  return std::visit([](const auto& one) { return line_with(json(one)); }, answer);
}

std::optional<to_device::Question> question_in(const std::string& line) {
  return message_of_line<to_device::Question>(line);
}

bool is_answer(const std::string& line) {
  return read_json_line(line, [](const json& object) { return object.is_object(); }) == true;
}

template <class One>
std::optional<One> answer_in(const std::string& line) {
  return read_json_line(line, [](const json& object) { return object.get<One>(); });
}
template std::optional<DeviceFacts> answer_in(const std::string& line);
template std::optional<of_device::Resolved> answer_in(const std::string& line);
template std::optional<of_device::Time> answer_in(const std::string& line);
template std::optional<of_device::Listening> answer_in(const std::string& line);
template std::optional<of_device::Tried> answer_in(const std::string& line);

}  // namespace tessera::engine
