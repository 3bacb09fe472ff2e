// Records of the files of a run as JSON and back. For each record there is a function
// fields_of(const Record&) that returns a tuple of Field: there alone its keys are spelt, in the
// order of the file.
//
// Whoever reads takes what fits: a member of which the file says nothing, or something else than it
// should, stays as it is in a record that was just made. Texts may be any bytes.

#pragma once

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "partitioner/base/region.h"

namespace tessera::engine {

using RecordJson = nlohmann::ordered_json;

// How a member is written that is as in a record that was just made: as it is, as null or not. A
// number that is unknown and an optional without a value are null in any case where they are
// written. Without one that is Refused, or with another kind of value, no record is read.
enum class Absent { Written, Null, LeftOut, Refused };

template <class Owner, class Value>
struct Field {
  constexpr Field(const char* its_key,
                  Value Owner::*its_member,
                  int its_digits = -1,
                  Absent if_absent = Absent::Written)
      : key(its_key), member(its_member), digits(its_digits), absent(if_absent) {}
  constexpr Field(const char* its_key, Value Owner::*its_member, Absent if_absent)
      : Field(its_key, its_member, -1, if_absent) {}

  const char* key;
  Value Owner::*member;
  int digits;  // behind the point, of a number; -1: all that there are
  Absent absent;
};

template <class Value>
concept Plain = std::is_arithmetic_v<Value> || std::is_same_v<Value, std::string>;
template <class Value>
concept Record = requires(const Value& value) {
  fields_of(value);
};
template <class Value>
concept List = requires(Value& value) {
  value.emplace_back();
}
&&!std::is_same_v<Value, RecordJson>;
template <class Value>
concept Table = requires {
  typename Value::mapped_type;
};
template <class Value>
concept Optional = requires(const Value& value) {
  value.has_value();
};

inline RecordJson number_json(double number, int digits) {
  constexpr double kMostWhole = 1e15;
  if (!std::isfinite(number)) {
    return {};
  }
  const double scale = digits < 0 ? 1 : std::pow(10.0, digits);
  const double rounded = digits < 0 ? number : std::round(scale * number) / scale;
  return digits == 0 && std::abs(rounded) < kMostWhole ? RecordJson(static_cast<Index>(rounded))
                                                       : RecordJson(rounded);
}

template <class Value>
RecordJson record_json(const Value& value, int digits = -1) {
  if constexpr (std::is_same_v<Value, double>) {
    return number_json(value, digits);
  } else if constexpr (Optional<Value>) {
    return value ? record_json(*value, digits) : RecordJson();
  } else if constexpr (std::is_same_v<Value, std::string>) {
    return value;
  } else if constexpr (List<Value>) {
    auto json = RecordJson::array();
    for (const auto& one : value) {
      json.push_back(record_json(one, digits));
    }
    return json;
  } else if constexpr (Table<Value>) {
    auto json = RecordJson::object();
    for (const auto& [key, one] : value) {
      json[key] = record_json(one, digits);
    }
    return json;
  } else if constexpr (Record<Value>) {
    auto json = RecordJson::object();
    const auto add = [&](const auto& field) {
      const auto& member = value.*field.member;
      bool said = true;
      if constexpr (Plain<std::decay_t<decltype(member)>>) {
        const bool always = field.absent == Absent::Written || field.absent == Absent::Refused;
        said = always || member != Value().*field.member;
      } else if constexpr (List<std::decay_t<decltype(member)>>) {
        said = field.absent != Absent::LeftOut || !member.empty();
      }
      RecordJson written = said ? record_json(member, field.digits) : RecordJson();
      if (field.absent != Absent::LeftOut || !written.is_null()) {
        json[field.key] = std::move(written);
      }
    };
    std::apply([&](const auto&... field) { (add(field), ...); }, fields_of(value));
    return json;
  } else {
    return value;
  }
}

template <class Value>
void take(const RecordJson& json, Value& value) {
  if constexpr (std::is_same_v<Value, RecordJson>) {
    value = json;
  } else if constexpr (std::is_same_v<Value, bool>) {
    value = json.is_boolean() ? json.get<bool>() : value;
  } else if constexpr (std::is_same_v<Value, double>) {
    value = json.is_number() ? json.get<double>() : json.is_boolean() ? json.get<bool>() : value;
  } else if constexpr (std::is_unsigned_v<Value>) {
    value = json.is_number_unsigned() ? json.get<Value>() : value;
  } else if constexpr (std::is_integral_v<Value>) {
    constexpr double kMost = sizeof(Value) < sizeof(Index) ? std::numeric_limits<int>::max() : 1e15;
    const double number = json.is_number() ? json.get<double>() : -1;
    value = number >= 0 && number <= kMost ? static_cast<Value>(number) : value;
  } else if constexpr (std::is_same_v<Value, std::string>) {
    value = json.is_string() ? json.get_ref<const std::string&>() : value;
  } else if constexpr (Optional<Value>) {
    if (!json.is_null()) {
      take(json, value.emplace());
    }
  } else if constexpr (List<Value>) {
    if (json.is_array()) {
      for (const RecordJson& one : json) {
        take(one, value.emplace_back());
      }
    }
  } else if constexpr (Table<Value>) {
    for (const auto& [key, one] : json.items()) {
      value[key] = std::numeric_limits<double>::quiet_NaN();
      take(one, value[key]);
    }
  } else if (json.is_object()) {
    const auto add = [&](const auto& field) {
      const auto found = json.find(field.key);
      if (field.absent == Absent::Refused &&
          (found == json.end() || found->type() != record_json(value.*field.member).type())) {
        throw RecordJson::out_of_range::create(403, field.key, &json);
      }
      if (found != json.end()) {
        take(*found, value.*field.member);
      }
    };
    std::apply([&](const auto&... field) { (add(field), ...); }, fields_of(value));
  }
}

template <class Value>
[[nodiscard]] Value record_of(const RecordJson& json) {
  Value value{};
  take(json, value);
  return value;
}

template <class Value>
[[nodiscard]] std::string record_text(const Value& value, int indent = -1) {
  return record_json(value).dump(indent, ' ', indent >= 0, RecordJson::error_handler_t::replace);
}

// Whether an object has a number with that key that counts something, of which there are no more.
[[nodiscard]] inline bool has_count(const RecordJson& json, const char* key, double most = 1e15) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  const double number =
      json.is_object() && found != json.end() && found->is_number() ? found->get<double>() : -1;
  return number >= 0 && number <= most;
}
// More ranks than there are in any run: a larger number is damage.
inline constexpr double kMostRanks = 100'000;

}  // namespace tessera::engine
