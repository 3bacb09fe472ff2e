// A section about a test of the run: the last one, or the best one where that is another.

#pragma once

#include <optional>
#include <string>

#include "engine/page/sections.h"

namespace tessera::engine {

struct TestWords {
  const char* title;    // "Classes": in the last test
  const char* missing;  // "Accuracy of each class": evaluation.json is missing
};

// `html_of` makes it of the evaluation's file; ids of elements begin with `prefix`. Nothing where
// the file is something else.
[[nodiscard]] PageSection test_section(
    const RunData& run,
    Test test,
    const TestWords& words,
    std::optional<std::string> (*html_of)(const std::string& evaluation,
                                          const std::string& prefix));

}  // namespace tessera::engine
