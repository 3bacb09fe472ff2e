// A section about a test of the run: the last one, or the best one where that is another.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/page/sections.h"

namespace tessera::engine {

struct TestWords {
  const char* title;    // "Classes": in the last test
  const char* missing;  // "Accuracy of each class": evaluation.json is missing
};

// `html_of` makes it of the evaluation's file; ids of elements begin with `prefix`. It may throw
// nlohmann::json::exception where the file is something else.
[[nodiscard]] PageSection test_section(const RunData& run,
                                       Test test,
                                       const TestWords& words,
                                       std::string (*html_of)(const nlohmann::json& evaluation,
                                                              const std::string& prefix));

}  // namespace tessera::engine
