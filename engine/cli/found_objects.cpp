#include "engine/cli/found_objects.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/train/classification_report.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

std::string drawn_line(const std::string& file) {
  return file.empty() ? "" : fmt::format("  drawn in {}\n", printable(file));
}

std::string objects_text(const std::string& picture,
                         const std::vector<FoundObject>& objects,
                         const std::optional<FoundObject>& best,
                         const std::string& drawn) {
  std::string text = fmt::format("{}\n", printable(picture));
  if (objects.empty()) {
    text += best ? fmt::format("  nothing (best score {:.2f} %, {})\n",
                               100 * best->score,
                               printable(best->name))
                 : fmt::format("  nothing (no score of {} %)\n", 100 * kLeastTestedScore);
  }
  for (const FoundObject& object : objects) {
    text += fmt::format("  {:6.2f} %  {}  {} {:.4f} {:.4f} {:.4f} {:.4f}\n",
                        100 * object.score,
                        printable(object.name),
                        object.label,
                        object.box.x,
                        object.box.y,
                        object.box.width,
                        object.box.height);
  }
  return text + drawn_line(drawn);
}

std::string objects_json(const std::string& picture,
                         const std::vector<FoundObject>& objects,
                         const std::optional<FoundObject>& best,
                         const std::string& drawn) {
  nlohmann::ordered_json json{{"picture", picture}, {"objects", nlohmann::ordered_json::array()}};
  for (const FoundObject& object : objects) {
    json["objects"].push_back(
        {{"class", object.label},
         {"name", object.name},
         {"score", object.score},
         {"box", {object.box.x, object.box.y, object.box.width, object.box.height}}});
  }
  if (objects.empty()) {
    json["best_score"] = best ? nlohmann::ordered_json(best->score) : nlohmann::ordered_json();
  }
  if (!drawn.empty()) {
    json["drawn"] = drawn;
  }
  return json_text(json) + "\n";
}

}  // namespace tessera::engine
