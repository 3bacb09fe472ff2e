// A training run as one page of HTML that needs nothing else: no network, no other file. It shows
// what its folder knows, and says what it does not.

#pragma once

#include <string>
#include <vector>

#include "engine/run_view/run_data.h"

namespace tessera::engine {

struct PageOptions {
  std::string title = {};  // empty: the model's name
  std::string as_of = {};  // when the folder was read, in words
};

// Any text in the folder may be anything: it is escaped.
[[nodiscard]] std::string run_page(const RunData& run, const PageOptions& options);

// What stands between the page's start and its footer: of any run as many texts, in the same order.
// One is empty where there is nothing to show.
[[nodiscard]] std::vector<std::string> page_parts(const RunData& run, const PageOptions& options);
// Of these, the place of what it learns: what a reader looks at first.
inline constexpr std::size_t kLearningPart = 3;

// From the first byte to the start of the body. `head` is what else stands in the head: markup.
[[nodiscard]] std::string page_start(const std::string& title, const std::string& head);

[[nodiscard]] std::string title_of(const RunData& run, const PageOptions& options);

}  // namespace tessera::engine
