#include "engine/data/sets/coco.h"

#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/files/json_text.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/regular_file.h"

namespace tessera::engine {

namespace {

using nlohmann::json;

constexpr Index kMostCocoBytes = Index{2} << 30U;

// A part of a file, and how to say where it is.
struct CocoPart {
  const std::filesystem::path& file;
  const json& value;
  std::string place;  // "annotations[3]"; empty: the whole file

  [[noreturn]] void fail(const std::string& key, const std::string& message) const {
    const std::string at = place + (place.empty() || key.empty() ? "" : ".") + key;
    throw InputError(file.string(), 0, at.empty() ? message : at + ": " + message);
  }
  // What is null is as if it were not there.
  [[nodiscard]] const json* find(const std::string& key) const {
    const auto found = value.is_object() ? value.find(key) : value.end();
    return value.is_object() && found != value.end() && !found->is_null() ? &*found : nullptr;
  }
  [[nodiscard]] const json& at(const std::string& key, const char* what) const {
    const json* found = find(key);
    if (found == nullptr) {
      fail(key, fmt::format("missing: expected {}", what));
    }
    return *found;
  }
  [[nodiscard]] Index integer(const std::string& key) const {
    const json& found = at(key, "a whole number");
    if (!found.is_number_integer() ||
        (found.is_number_unsigned() &&
         found.get<std::uint64_t>() >
             static_cast<std::uint64_t>(std::numeric_limits<Index>::max()))) {
      fail(key, fmt::format("expected a whole number, found {}", start_of(found)));
    }
    return found.get<Index>();
  }
  [[nodiscard]] double number(const std::string& key, std::optional<double> otherwise = {}) const {
    if (otherwise && find(key) == nullptr) {
      return *otherwise;
    }
    return number_of(at(key, "a number"), key);
  }
  [[nodiscard]] double number_of(const json& found, const std::string& key) const {
    if (!found.is_number() || !std::isfinite(found.get<double>())) {
      fail(key, fmt::format("expected a number, found {}", start_of(found)));
    }
    return found.get<double>();
  }
  [[nodiscard]] std::string text(const std::string& key, bool needed) const {
    const json* found = needed ? &at(key, "a text") : find(key);
    if (found == nullptr) {
      return "";
    }
    if (!found->is_string()) {
      fail(key, fmt::format("expected a text, found {}", start_of(*found)));
    }
    return found->get<std::string>();
  }
  [[nodiscard]] bool flag(const std::string& key) const {
    const json* found = find(key);
    if (found == nullptr) {
      return false;
    }
    if (found->is_boolean()) {
      return found->get<bool>();
    }
    const Index value_of_key = integer(key);
    if (value_of_key != 0 && value_of_key != 1) {
      fail(key, fmt::format("expected 0 or 1, found {}", value_of_key));
    }
    return value_of_key == 1;
  }
  [[nodiscard]] PixelBox box() const {
    const json& found = at("bbox", "left, top, width and height in pixels");
    if (!found.is_array() || found.size() != 4) {
      fail("bbox", fmt::format("expected four numbers, found {}", start_of(found)));
    }
    const PixelBox box{number_of(found[0], "bbox"),
                       number_of(found[1], "bbox"),
                       number_of(found[2], "bbox"),
                       number_of(found[3], "bbox")};
    if (box.width < 0 || box.height < 0) {
      fail("bbox", fmt::format("a box of {} x {} pixels", box.width, box.height));
    }
    return box;
  }

  static std::string start_of(const json& found) {
    constexpr std::size_t kShown = 40;
    return printable_start(
        found.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, kShown));
  }
};

// What the text of a file has, of which `take` has already taken what it gives false for.
json parse_coco(const std::filesystem::path& path,
                const std::string& text,
                const json::parser_callback_t& take) {
  try {
    return json::parse(text, take);
  } catch (const json::exception& error) {
    throw InputError(path.string(), 0, std::string("not JSON: ") + error.what());
  }
}

// Calls read(), which may find out `image`, and keeps what is wrong.
template <class Read>
void keep_fault(const std::filesystem::path& file,
                const std::optional<Index>& image,
                std::vector<CocoFault>& faults,
                Read read) {
  try {
    read();
  } catch (const InputError& error) {
    const std::string start = InputError(file.string(), 0, "").what();
    faults.push_back({image, std::string(error.what()).substr(start.size())});
  }
}

std::string read_coco_text(const std::filesystem::path& path) {
  std::string text = read_regular_file(path, "a JSON file", kMostCocoBytes);
  if (!is_shallow_json(text)) {
    throw InputError(
        path.string(), 0, "not in the format of COCO: arrays lie too deep in each other");
  }
  return text;
}

bool ends_value(json::parse_event_t event) {
  return event == json::parse_event_t::object_end || event == json::parse_event_t::array_end ||
         event == json::parse_event_t::value;
}

using TakePart = std::function<void(const CocoPart&)>;

// Gives each element of these arrays of a file to what takes it: no more than one is in memory at a
// time, and nothing of the other arrays.
void for_each_of(const std::filesystem::path& path,
                 const std::string& text,
                 const std::map<std::string, TakePart>& arrays) {
  auto array = arrays.end();
  bool in_array = false;
  std::size_t element = 0;
  const json file = parse_coco(path, text, [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth == 0) {
      return true;
    }
    if (depth == 1) {
      if (event == json::parse_event_t::key) {
        array = arrays.find(parsed.get_ref<const std::string&>());
        element = 0;
      }
      in_array = event == json::parse_event_t::array_start;
    }
    if (depth == 2 && in_array && array != arrays.end() && ends_value(event)) {
      array->second(CocoPart{path, parsed, fmt::format("{}[{}]", array->first, element++)});
      return false;
    }
    return array != arrays.end();
  });
  const CocoPart whole{path, file, ""};
  if (!file.is_object()) {
    whole.fail("", "expected an object with images, categories and annotations");
  }
  for (const auto& [name, take] : arrays) {
    if (!whole.at(name, "an array").is_array()) {
      whole.fail(name, "expected an array");
    }
  }
}

// The places of things in their list, by id.
class CocoPlaces {
 public:
  explicit CocoPlaces(const char* name) : name_(name) {}

  [[nodiscard]] bool add(Index id) {
    return places_.emplace(id, static_cast<Index>(places_.size())).second;
  }
  // Of a part that becomes the next of the list.
  Index add(const CocoPart& part) {
    const Index id = part.integer("id");
    if (!add(id)) {
      part.fail("id", fmt::format("{} is there a second time", id));
    }
    return id;
  }
  [[nodiscard]] std::optional<Index> find(Index id) const {
    const auto found = places_.find(id);
    return found == places_.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] Index at(const CocoPart& part, const char* key) const {
    const Index id = part.integer(key);
    const std::optional<Index> place = find(id);
    if (!place) {
      part.fail(key, fmt::format("{} is none of the {}", id, name_));
    }
    return *place;
  }

 private:
  const char* name_;
  std::map<Index, Index> places_;
};

template <class Listed>
CocoPlaces places_of(const char* name, const std::vector<Listed>& listed) {
  CocoPlaces places(name);
  for (const Listed& each : listed) {
    (void)places.add(each.id);
  }
  return places;
}

}  // namespace

CocoSet read_coco_set(const std::filesystem::path& path) {
  const std::string text = read_coco_text(path);
  CocoSet set;
  CocoPlaces images("images");
  const auto add_image = [&](const CocoPart& part) {
    std::optional<Index> image;
    keep_fault(path, image, set.faults, [&] {
      const Index id = images.add(part);
      image = std::ssize(set.images);
      CocoImage& added = set.images.emplace_back();
      added.id = id;
      added.file = part.text("file_name", false);
      added.width = part.number("width", 0);
      added.height = part.number("height", 0);
    });
  };
  CocoPlaces categories("categories");
  const auto add_category = [&](const CocoPart& part) {
    set.categories.push_back({categories.add(part), part.text("name", true)});
  };
  for_each_of(path, text, {{"images", add_image}, {"categories", add_category}});
  Index annotation = 0;
  const auto add_annotation = [&](const CocoPart& part) {
    std::optional<Index> image;
    keep_fault(path, image, set.faults, [&] {
      image = images.at(part, "image_id");
      const Index label = categories.at(part, "category_id");
      const PixelBox box = part.box();
      const json* area = part.find("area");
      set.objects.push_back(
          {*image,
           label,
           box,
           area != nullptr && area->is_number() ? part.number("area") : box.width * box.height,
           part.flag("iscrowd")});
      set.annotations.push_back(annotation);
    });
    ++annotation;
  };
  for_each_of(path, text, {{"annotations", add_annotation}});
  return set;
}

CocoFindings read_coco_findings(const std::filesystem::path& path, const CocoSet& set) {
  const CocoPlaces images = places_of("images of the ground truth", set.images);
  const CocoPlaces categories = places_of("categories", set.categories);
  CocoFindings findings;
  const auto add_finding = [&](const CocoPart& part) {
    const Index image = images.at(part, "image_id");
    const Index category = part.integer("category_id");
    const std::optional<Index> label = categories.find(category);
    const FoundBox found{image, label.value_or(0), part.box(), part.number("score")};
    if (label) {
      findings.boxes.push_back(found);
    } else {
      ++findings.left_out[category];
    }
  };
  bool in_array = false;
  std::size_t element = 0;
  const json file = parse_coco(
      path, read_coco_text(path), [&](int depth, json::parse_event_t event, json& parsed) {
        if (depth == 0) {
          in_array = event == json::parse_event_t::array_start;
        } else if (depth == 1 && in_array && ends_value(event)) {
          add_finding(CocoPart{path, parsed, fmt::format("[{}]", element++)});
          return false;
        }
        return depth == 0 || in_array;
      });
  if (!file.is_array()) {
    CocoPart{path, file, ""}.fail(
        "", "expected an array of findings, each with image_id, category_id, bbox and score");
  }
  return findings;
}

}  // namespace tessera::engine
