#include "engine/serve/live_page.h"

#include <string>

#include "tests/support/refusals.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using tests::has;

TEST_CASE("names of folders are escaped, and the script lies where the page does") {
  const std::string end = engine::live_page_end("/word/", "<b>runs</b>");
  CHECK(has(end, "&lt;b&gt;runs&lt;/b&gt;"));
  CHECK(has(end, "<script src=\"/word/live.js\">"));
  CHECK(!has(engine::live_page_start(), "http-equiv"));  // its policy is a header of the answer
}

TEST_CASE("a run that was killed is not one that has ended") {
  engine::LiveState state{.mark = "a-7", .run = engine::RunState::Interrupted, .quiet_s = 40};
  CHECK(has(live_state_html(state), "data-mark=\"a-7\" data-state=\"interrupted\""));
  state.killed = true;
  CHECK(has(live_state_html(state), "data-state=\"killed\" data-age=\"0.0\" data-quiet=\"40\""));
}

}  // namespace
