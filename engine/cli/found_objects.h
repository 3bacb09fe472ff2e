// What `predict` says of the objects that a detector finds on a picture.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/session/prediction.h"

namespace tessera::engine {

// The line that says in which file a picture is drawn; nothing where it is in none.
[[nodiscard]] std::string drawn_line(const std::string& file);

// Class, centre, width and height are as Darknet's label texts have them. The JSON is one line.
// `best` is what there would have been where there are no objects.
[[nodiscard]] std::string objects_text(const std::string& picture,
                                       const std::vector<FoundObject>& objects,
                                       const std::optional<FoundObject>& best,
                                       const std::string& drawn);
[[nodiscard]] std::string objects_json(const std::string& picture,
                                       const std::vector<FoundObject>& objects,
                                       const std::optional<FoundObject>& best,
                                       const std::string& drawn);

}  // namespace tessera::engine
