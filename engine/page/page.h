// A training run as one page of HTML that needs nothing else: no network, no other file. It shows
// what its folder knows, and says what it does not.

#pragma once

#include <string>

#include "engine/run_view/run_data.h"

namespace tessera::engine {

struct PageOptions {
  std::string title = {};  // empty: the model's name
  std::string as_of = {};  // when the folder was read, in words
};

// Any text in the folder may be anything: it is escaped.
[[nodiscard]] std::string run_page(const RunData& run, const PageOptions& options);

}  // namespace tessera::engine
