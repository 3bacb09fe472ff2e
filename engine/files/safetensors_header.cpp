#include "engine/files/safetensors_header.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "partitioner/base/errors.h"

namespace tessera::engine {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

namespace {

constexpr const char* kMetadata = "__metadata__";
constexpr int kDeepest = 3;  // {name: {shape: [0]}}

struct TypeRow {
  ElementType type;
  const char* name;
  Index bytes;
};

constexpr TypeRow kTypes[] = {
    {ElementType::F32, "F32", 4},
    {ElementType::F64, "F64", 8},
    {ElementType::I64, "I64", 8},
    {ElementType::U8, "U8", 1},
};

const TypeRow& row_of(ElementType type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) {
      return row;
    }
  }
  throw std::logic_error("an element type without a row in kTypes");
}

std::optional<ElementType> type_named(const std::string& name) {
  for (const TypeRow& row : kTypes) {
    if (name == row.name) {
      return row.type;
    }
  }
  return std::nullopt;
}

[[noreturn]] void refuse_header(const std::string& file, const std::string& message) {
  throw InputError(file, 0, message);
}

[[noreturn]] void refuse_json(const std::string& file, std::size_t byte) {
  refuse_header(
      file,
      fmt::format("the header is not JSON from byte {} on; is this a safetensors file?", byte));
}

// The JSON library keeps the last of two equal keys, takes any depth and ends at a zero; the format
// allows none of it.
Json parse_json(std::string_view text, const std::string& file) {
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    refuse_json(file, 9 + zero);
  }
  std::vector<std::set<std::string>> keys_of_open_objects;
  const auto check = [&](int depth, Json::parse_event_t event, Json& value) {
    using Event = Json::parse_event_t;
    if (depth >= kDeepest && (event == Event::object_start || event == Event::array_start)) {
      refuse_header(file, "the header is nested too deeply; is this a safetensors file?");
    }
    if (event == Event::object_start) {
      keys_of_open_objects.emplace_back();
    } else if (event == Event::object_end) {
      keys_of_open_objects.pop_back();
    } else if (event == Event::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!keys_of_open_objects.back().insert(key).second) {
        refuse_header(file,
                      fmt::format("the header has {} twice; names must differ", in_quotes(key)));
      }
    }
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::parse_error& error) {
    refuse_json(file, 8 + error.byte);
  } catch (const Json::exception&) {
    refuse_header(file, "the header has a number out of range; is this a safetensors file?");
  }
}

std::map<std::string, std::string> parse_metadata(const Json& json, const std::string& file) {
  if (!json.is_object()) {
    refuse_header(file, "__metadata__ is not an object; expected {\"key\": \"text\", ...}");
  }
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) {
      refuse_header(file, fmt::format("__metadata__ {} is not a string", in_quotes(key)));
    }
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

std::vector<Index> parse_indices(const Json& json,
                                 const std::string& file,
                                 const std::string& what) {
  if (!json.is_array()) {
    refuse_header(file, what + " is not a list of numbers");
  }
  std::vector<Index> indices;
  for (const Json& value : json) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::uint64_t{INT64_MAX}) {
      refuse_header(file, what + " has an entry that is not an integer of at least 0");
    }
    indices.push_back(value.get<Index>());
  }
  return indices;
}

struct Entry {
  StoredTensor tensor;
  Index begin = 0;
  Index end = 0;
};

// -1 where the shape is larger than any file.
Index byte_count(const StoredTensor& tensor) {
  try {
    const Index count = element_count(tensor);
    const Index bytes = element_bytes(tensor.type);
    return count > INT64_MAX / bytes ? -1 : count * bytes;
  } catch (const std::overflow_error&) {
    return -1;
  }
}

Entry parse_entry(const std::string& name, const Json& json, const std::string& file) {
  const std::string who = "tensor " + in_quotes(name);
  if (!json.is_object() || json.size() != 3 || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets")) {
    refuse_header(file, who + ": expected exactly dtype, shape and data_offsets");
  }
  const Json& dtype = json["dtype"];
  const std::string type_name = dtype.is_string() ? dtype.get<std::string>() : "";
  const std::optional<ElementType> type = type_named(type_name);
  if (!type) {
    refuse_header(file,
                  fmt::format("{} is of type {}; expected F32, F64, I64 or U8: convert it",
                              who,
                              in_quotes(type_name)));
  }
  Entry entry;
  entry.tensor = {
      .name = name, .shape = parse_indices(json["shape"], file, who + ": shape"), .type = *type};
  const std::vector<Index> offsets =
      parse_indices(json["data_offsets"], file, who + ": data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    refuse_header(file, who + ": data_offsets must be [begin, end] with begin <= end");
  }
  entry.begin = offsets[0];
  entry.end = offsets[1];
  const Index bytes = byte_count(entry.tensor);
  if (bytes != entry.end - entry.begin) {
    refuse_header(
        file,
        fmt::format("{} has {} bytes, but its shape and type need {}; the file is damaged",
                    who,
                    entry.end - entry.begin,
                    bytes < 0 ? "more than any file has" : std::to_string(bytes)));
  }
  return entry;
}

// In order of offsets each begins where the one before ends, and the last ends with the file.
void check_order(const std::vector<Entry>& entries, const std::string& file, Index data_bytes) {
  Index end = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != end) {
      refuse_header(
          file,
          fmt::format("tensor {} begins at byte {} of the data, expected {}: {}",
                      in_quotes(entry.tensor.name),
                      entry.begin,
                      end,
                      entry.begin < end ? "tensors overlap" : "there is a hole before it"));
    }
    end = entry.end;
  }
  if (end != data_bytes) {
    refuse_header(file,
                  fmt::format("the tensors need {} bytes of data, the file has {}: {}",
                              end,
                              data_bytes,
                              end > data_bytes ? "it is cut short; copy it again"
                                               : "something follows the last tensor"));
  }
}

}  // namespace

const char* element_type_name(ElementType type) {
  return row_of(type).name;
}

Index element_bytes(ElementType type) {
  return row_of(type).bytes;
}

Index element_count(const StoredTensor& tensor) {
  const auto zero = std::find(tensor.shape.begin(), tensor.shape.end(), 0);
  if (zero != tensor.shape.end()) {
    return 0;
  }
  Index count = 1;
  for (const Index size : tensor.shape) {
    expects(size > 0, "sizes are not negative");
    if (count > INT64_MAX / size) {
      throw std::overflow_error("tensor " + in_quotes(tensor.name) +
                                " has more elements than can be counted");
    }
    count *= size;
  }
  return count;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string result = "'";
  for (const char letter : text.substr(0, kLongest)) {
    const bool printable = letter >= ' ' && letter <= '~';
    result += printable ? letter : '?';
  }
  result += text.size() > kLongest ? "...'" : "'";
  return result;
}

SafetensorsHeader parse_safetensors_header(std::string_view text,
                                           const std::string& name,
                                           Index data_bytes) {
  const Json json = parse_json(text, name);
  if (!json.is_object()) {
    refuse_header(name, "the header is not an object; is this a safetensors file?");
  }
  SafetensorsHeader header;
  std::vector<Entry> entries;
  for (const auto& [key, value] : json.items()) {
    if (key == kMetadata) {
      header.metadata = parse_metadata(value, name);
    } else {
      entries.push_back(parse_entry(key, value, name));
    }
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  check_order(entries, name, data_bytes);
  for (Entry& entry : entries) {
    header.tensors.push_back(std::move(entry.tensor));
    header.begins.push_back(entry.begin);
  }
  return header;
}

std::map<std::string, std::string> as_stored(const std::map<std::string, std::string>& metadata) {
  return Json::parse(Json(metadata).dump(-1, ' ', false, Json::error_handler_t::replace))
      .get<std::map<std::string, std::string>>();
}

std::string safetensors_header(const std::vector<StoredTensor>& tensors,
                               const std::map<std::string, std::string>& metadata) {
  OrderedJson json = OrderedJson::object();
  if (!metadata.empty()) {
    json[kMetadata] = metadata;
  }
  Index end = 0;
  std::set<std::string> names = {kMetadata};
  for (const StoredTensor& tensor : tensors) {
    expects(names.insert(tensor.name).second, "names of stored tensors differ");
    const Index begin = end;
    const Index bytes = byte_count(tensor);
    expects(bytes >= 0 && bytes <= INT64_MAX - begin, "stored tensors can be counted in bytes");
    end = begin + bytes;
    // Not through operator[]: that searches, and a model may have thousands of tensors.
    json.get_ref<OrderedJson::object_t&>().emplace_back(
        tensor.name,
        OrderedJson{{"dtype", element_type_name(tensor.type)},
                    {"shape", tensor.shape},
                    {"data_offsets", {begin, end}}});
  }
  std::string text = json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}  // namespace tessera::engine
