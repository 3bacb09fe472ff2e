#include "partitioner/base/toml_bounds.h"

#include <algorithm>
#include <cstddef>

#include "partitioner/base/errors.h"
#include "partitioner/base/region.h"

namespace tessera {

namespace {

constexpr int kDeepest = 16;              // brackets in brackets, parts of a key
constexpr Index kMostValues = 1'000'000;  // about 150 MB once parsed

// Walks over a text and counts, outside of comments and strings.
class Walk {
 public:
  Walk(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  void expect_bounds() {
    while (!rest_.empty()) {
      const char letter = rest_.front();
      if (letter == '#') {
        skip(std::min(rest_.find('\n'), rest_.size()));
      } else if (letter == '"' || letter == '\'') {
        skip_string(letter);
      } else {
        count(letter);
        skip(1);
      }
    }
  }

 private:
  void skip(std::size_t bytes) {
    bytes = std::min(bytes, rest_.size());
    line_ += static_cast<int>(
        std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(bytes), '\n'));
    rest_.remove_prefix(bytes);
  }

  // From its opening quote to its closing one; a string of one line that has none ends there.
  void skip_string(char quote) {
    const std::string three(3, quote);
    const bool lines = rest_.substr(0, 3) == three;
    skip(lines ? 3 : 1);
    while (!rest_.empty()) {
      if (lines ? rest_.substr(0, 3) == three : rest_.front() == quote) {
        skip(lines ? std::min<std::size_t>(rest_.find_first_not_of(quote), 5) : 1);
        return;
      }
      if (!lines && rest_.front() == '\n') {
        return;
      }
      skip(quote == '"' && rest_.front() == '\\' ? 2 : 1);
    }
  }

  void count(char letter) {
    if (letter == '[' || letter == '{') {
      ++depth_;
    } else if (letter == ']' || letter == '}') {
      depth_ = std::max(depth_ - 1, 0);
    } else if (letter == ',' || letter == '=') {
      ++values_;
    }
    if (letter == '.') {
      ++dots_;
    } else if (std::string_view("=,[]{}\n").find(letter) != std::string_view::npos) {
      dots_ = 0;
    }
    if (depth_ > kDeepest || dots_ > kDeepest) {
      refuse("nests more than " + std::to_string(kDeepest) + " deep");
    }
    if (values_ > kMostValues) {
      refuse("has more than " + std::to_string(kMostValues) + " values");
    }
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw InputError(name_, line_, "this " + what + ", which no file of this program does");
  }

  std::string_view rest_;
  const std::string& name_;
  int line_ = 1;
  int depth_ = 0;
  int dots_ = 0;
  Index values_ = 0;
};

}  // namespace

void expect_bounded_toml(std::string_view text, const std::string& name) {
  Walk(text, name).expect_bounds();
}

}  // namespace tessera
