#include "engine/recovery/kept_text.h"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::ArrayKind;
using engine::KeptText;
using engine::parse_kept_text;

KeptText sample() {
  return {.network = "n1",
          .start = 0xfedcba9876543210U,
          .plan = "p1",
          .adam = true,
          .copies = 2,
          .first_learns = true,
          .images_seen = 640,
          .latest = {{9, 0.5, 0.125}, {10, 0.25, 0.1}},
          .parts = {{{0, ArrayKind::Values, 1}, {0, 4}},
                    {{0, ArrayKind::Second, 0}, {4, 4}},
                    {{3, ArrayKind::OfRank, 0}, {0, 7}}}};
}

TEST_CASE("what a file says of its content is read as it was written") {
  CHECK(parse_kept_text(to_text(sample()), 11) == sample());
}

TEST_CASE("texts of one step after another have the latest steps, and room for any numbers") {
  engine::KeptTexts texts(sample());
  KeptText expected = sample();
  expected.latest.clear();
  std::string text;
  for (Index step = 1; step <= 150; ++step) {
    const engine::StepLoss loss{step, 1.0 / static_cast<double>(step), -1.2345678901234567e-300};
    expected.latest.push_back(loss);
    expected.images_seen = 8 * step;
    text = texts.after(loss, 8 * step);
    CHECK(std::ssize(text) <= texts.most_bytes());
  }
  expected.latest.erase(expected.latest.begin(), expected.latest.begin() + 50);
  CHECK(parse_kept_text(text, 11) == expected);
  for (Index step = 0; step < 100; ++step) {
    text = texts.after({std::numeric_limits<Index>::max() - step, -1.2345678901234567e-300, 0.5},
                       std::numeric_limits<Index>::max());
    CHECK(std::ssize(text) <= texts.most_bytes());
  }
  CHECK(parse_kept_text(text, 11).value().latest.size() == 100);
  text = texts.after({7, NAN, INFINITY}, 8);
  CHECK(parse_kept_text(text, 11).value().latest.size() == 99);  // no number, no line
}

TEST_CASE("a text whose parts are not as many floats as there are is refused") {
  CHECK_FALSE(parse_kept_text(to_text(sample()), 10));
  CHECK_FALSE(parse_kept_text(to_text(sample()), 12));
  CHECK_FALSE(parse_kept_text(to_text(sample()), -1));
}

TEST_CASE("damaged texts of kept states are refused") {
  const std::string good = to_text(sample());
  for (std::size_t end = 0; end < good.size(); ++end) {
    CHECK_FALSE(parse_kept_text(good.substr(0, end), 11));
  }
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    INFO(text);
    CHECK_FALSE(parse_kept_text(text, 11));
  };
  refused("[0,0,1,0,4]", "[-1,0,1,0,4]");
  refused("[0,0,1,0,4]", "[0,5,1,0,4]");
  refused("[0,0,1,0,4]", "[0,0,-1,0,4]");
  refused("[0,0,1,0,4]", "[0,0,1,4,0]");
  refused("[0,0,1,0,4]", "[0,0,1,-4,0]");
  refused("[0,0,1,0,4]", "[0,0,1,0,4.0]");
  refused("[0,0,1,0,4]", "[0,0,1,0,1e300]");
  refused("[0,0,1,0,4]", "[0,0,1,0,18446744073709551615]");
  refused("[0,0,1,0,4]", "[0,0,1,0]");
  refused("[0,0,1,0,4]", "{}");
  refused("[0,0,1,0,4]", "\"four\"");
  refused("\"copies\":2", "\"copies\":0");
  refused("\"copies\":2", "\"copies\":\"2\"");
  refused("\"images_seen\":640", "\"images_seen\":-1");
  refused("\"network\":\"n1\"", "\"network\":1");
  refused("\"plan\":\"p1\"", "\"plane\":\"p1\"");
  refused("\"start\":18364758544493064720", "\"start\":-5");
  CHECK_FALSE(parse_kept_text("[]", 0));
  CHECK_FALSE(parse_kept_text("null", 0));
  CHECK_FALSE(parse_kept_text(std::string(100'000, '['), 0));
}

}  // namespace
