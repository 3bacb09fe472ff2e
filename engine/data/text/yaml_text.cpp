#include "engine/data/text/yaml_text.h"

#include <cstddef>
#include <fmt/format.h>

#include "partitioner/base/errors.h"

#ifdef TESSERA_HAS_YAML
#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <utf8proc.h>
#include <utility>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "engine/data/text/read_file.h"
#include "engine/data/text/text_encoding.h"
#include "partitioner/base/printable.h"
#endif

namespace tessera::engine {

namespace fs = std::filesystem;

const YamlValue* YamlValue::find(std::string_view key) const {
  for (std::size_t i = 0; kind == Map && i < items.size(); i += 2) {
    if (items[i].text == key) {
      return items[i + 1].kind == Nothing ? nullptr : &items[i + 1];
    }
  }
  return nullptr;
}

#ifdef TESSERA_HAS_YAML

namespace {

constexpr Index kMostYamlBytes = Index{1} << 20;
constexpr Index kMostValues = Index{1} << 18;
constexpr Index kMostTextBytes = 16 * kMostYamlBytes;
constexpr std::size_t kMostDepth = 32;

int line_of(const YAML::Mark& mark) {
  return mark.is_null() ? 0 : mark.line + 1;
}

// What the parser calls back for.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const fs::path& file) : file_(file) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root_) {
      fail(line_of(mark), "a second document begins here: expected one");
    }
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add({YamlValue::Nothing, false, line_of(mark), "", {}}, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) {
      fail(line_of(mark), "this alias refers to what it is a part of");
    }
    count(found->second);
    add(found->second, 0);
  }
  void OnScalar(const YAML::Mark& mark,
                const std::string& tag,
                YAML::anchor_t anchor,
                const std::string& value) override {
    const bool quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    YamlValue scalar{YamlValue::Scalar, quoted, line_of(mark), value, {}};
    count(scalar);
    add(std::move(scalar), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark,
                       const std::string& /*tag*/,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    start(YamlValue::List, mark, anchor);
  }
  void OnSequenceEnd() override { finish(); }
  void OnMapStart(const YAML::Mark& mark,
                  const std::string& /*tag*/,
                  YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    start(YamlValue::Map, mark, anchor);
  }
  void OnMapEnd() override {
    expect_different_keys(open_.back().value);
    finish();
  }

  [[nodiscard]] YamlValue take() { return root_ ? *std::move(root_) : YamlValue(); }

 private:
  struct Open {
    YamlValue value;
    YAML::anchor_t anchor;
  };

  [[noreturn]] void fail(int line, const std::string& what) const {
    throw InputError(file_.string(), line, what);
  }

  void count(const YamlValue& value) {
    values_ += 1;
    text_bytes_ += static_cast<Index>(value.text.size());
    if (values_ > kMostValues || text_bytes_ > kMostTextBytes) {
      fail(value.line,
           fmt::format("expected at most {} values and {} bytes of text, aliases counted as what "
                       "they refer to",
                       kMostValues,
                       kMostTextBytes));
    }
    for (const YamlValue& item : value.items) {
      count(item);
    }
  }

  void start(YamlValue::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (open_.size() == kMostDepth) {
      fail(line_of(mark), fmt::format("nested too deeply: expected at most {} levels", kMostDepth));
    }
    open_.push_back({{kind, false, line_of(mark), "", {}}, anchor});
    count(open_.back().value);
  }

  void finish() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done.value), done.anchor);
  }

  void add(YamlValue value, YAML::anchor_t anchor) {
    if (anchor != 0) {
      count(value);
      anchored_[anchor] = value;
    }
    if (open_.empty()) {
      root_ = std::move(value);
    } else {
      open_.back().value.items.push_back(std::move(value));
    }
  }

  void expect_different_keys(const YamlValue& map) const {
    std::map<std::string_view, int> lines;
    for (std::size_t i = 0; i < map.items.size(); i += 2) {
      const YamlValue& key = map.items[i];
      if (key.kind != YamlValue::Scalar) {
        fail(key.line, "expected a text or a number as key");
      }
      if (const auto [before, is_new] = lines.emplace(key.text, key.line); !is_new) {
        fail(key.line,
             fmt::format("{} is given a second time, after line {}: remove one of them",
                         printable_start(key.text),
                         before->second));
      }
    }
  }

  const fs::path& file_;
  std::vector<Open> open_;  // lists and maps that what is read next is in
  std::map<YAML::anchor_t, YamlValue> anchored_;
  std::optional<YamlValue> root_;
  Index values_ = 0;
  Index text_bytes_ = 0;
};

// The whole text. Throws where it is none of UTF-8.
std::string read_text(const fs::path& file) {
  std::vector<std::uint8_t> bytes = read_bytes(file, kMostYamlBytes, "a YAML file");
  if (const auto problem = convert_to_utf8(bytes)) {
    throw InputError(file.string(), 0, *problem);
  }
  int line = 1;
  for (std::size_t at = 0; at < bytes.size();) {
    utf8proc_int32_t letter = 0;
    const utf8proc_ssize_t size = ::utf8proc_iterate(
        bytes.data() + at, static_cast<utf8proc_ssize_t>(bytes.size() - at), &letter);
    if (size <= 0 || letter == 0) {
      throw InputError(file.string(),
                       line,
                       size <= 0 ? "these bytes are not UTF-8: save the file as UTF-8"
                                 : "a zero byte: expected text");
    }
    line += letter == '\n' ? 1 : 0;
    at += static_cast<std::size_t>(size);
  }
  return {bytes.begin(), bytes.end()};
}

}  // namespace

YamlValue read_yaml(const fs::path& file) {
  std::istringstream text(read_text(file));
  TreeBuilder tree(file);
  try {
    YAML::Parser parser(text);
    while (parser.HandleNextDocument(tree)) {
    }
  } catch (const YAML::Exception& error) {
    throw InputError(file.string(), line_of(error.mark), "this is not YAML: " + error.msg);
  }
  return tree.take();
}

#else

YamlValue read_yaml(const fs::path& file) {
  throw InputError(file.string(),
                   0,
                   "this program was built without yaml-cpp: install libyaml-cpp-dev and build it "
                   "again");
}

#endif

}  // namespace tessera::engine
