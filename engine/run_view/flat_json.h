// The members of a JSON object, one by one, without a tree in between: a run has hundreds of
// thousands of such lines. What lies deeper than one object in the outer one is left out.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera::engine {

// A member; those of an object inside have "outer.inner" as their key.
struct JsonMember {
  enum class Kind { Number, Text, Other };
  std::string key;
  Kind kind = Kind::Other;  // of null, arrays and objects
  double number = 0;        // booleans are 0 and 1
  std::string text;
};

class FlatJson {
 public:
  // Whether the text is a JSON object.
  bool parse(std::string_view text);

  // The members of the last object, in their order.
  [[nodiscard]] const std::vector<JsonMember>& members() const { return members_; }

  // The number with that key, or NaN.
  [[nodiscard]] double number(std::string_view key) const;
  // The text with that key, or an empty one.
  [[nodiscard]] std::string_view text(std::string_view key) const;

 private:
  class Handler;
  std::vector<JsonMember> members_;
};

}  // namespace tessera::engine
