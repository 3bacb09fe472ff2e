#include "engine/run_view/flat_json.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace tessera::engine {

// Keeps the members of an object in the one that is parsed, and of those in it.
class FlatJson::Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Handler(std::vector<JsonMember>& members) : members_(members) {}

  bool null() override { return add(JsonMember::Kind::Other, 0); }
  bool boolean(bool value) override { return add(JsonMember::Kind::Number, value ? 1 : 0); }
  bool number_integer(number_integer_t value) override {
    return add(JsonMember::Kind::Number, static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return add(JsonMember::Kind::Number, static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    return add(JsonMember::Kind::Number, value);
  }
  bool string(string_t& value) override {
    const bool kept = add(JsonMember::Kind::Text, 0);
    if (kept && adds()) {
      members_.back().text = value;
    }
    return kept;
  }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*members*/) override {
    if (depth_ > 0) {
      add(JsonMember::Kind::Other, 0);
      outer_ = depth_ == 1 && arrays_ == 0 ? key_ + '.' : outer_;
    }
    return ++depth_ <= kMostDepth;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool key(string_t& value) override {
    if (adds()) {
      key_ = value;
    }
    return true;
  }
  bool start_array(std::size_t /*elements*/) override {
    add(JsonMember::Kind::Other, 0);
    // Nothing but an object is on the outside.
    return depth_ > 0 && ++arrays_ <= kMostDepth;
  }
  bool end_array() override {
    --arrays_;
    return true;
  }
  bool parse_error(std::size_t /*position*/,
                   const std::string& /*last_token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

 private:
  static constexpr int kMostDepth = 100;

  [[nodiscard]] bool adds() const { return arrays_ == 0 && (depth_ == 1 || depth_ == 2); }

  // False where a value is on the outside, where an object should be.
  bool add(JsonMember::Kind kind, double number) {
    if (adds()) {
      members_.push_back({depth_ == 2 ? outer_ + key_ : key_, kind, number, {}});
    }
    return depth_ > 0;
  }

  std::vector<JsonMember>& members_;
  std::string key_;
  std::string outer_;
  int depth_ = 0;
  int arrays_ = 0;
};

bool FlatJson::parse(std::string_view text) {
  members_.clear();
  Handler handler(members_);
  return nlohmann::json::sax_parse(text, &handler);
}

double FlatJson::number(std::string_view key) const {
  const auto found = std::find_if(members_.begin(), members_.end(), [&](const JsonMember& member) {
    return member.key == key && member.kind == JsonMember::Kind::Number;
  });
  return found == members_.end() ? std::numeric_limits<double>::quiet_NaN() : found->number;
}

std::string_view FlatJson::text(std::string_view key) const {
  const auto found = std::find_if(members_.begin(), members_.end(), [&](const JsonMember& member) {
    return member.key == key && member.kind == JsonMember::Kind::Text;
  });
  return found == members_.end() ? std::string_view() : std::string_view(found->text);
}

}  // namespace tessera::engine
