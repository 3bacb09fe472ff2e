#include "engine/system/command_words.h"

#include <string_view>

namespace tessera::engine {

std::vector<std::string> without(const std::vector<std::string>& words, const LeftOut& left_out) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view name = std::string_view(words[i]).substr(0, words[i].find('='));
    if (left_out.with_value.count(name) > 0) {
      i += name.size() == words[i].size() ? 1 : 0;
    } else if (left_out.flags.count(name) == 0) {
      kept.push_back(words[i]);
    }
  }
  return kept;
}

std::string value_of(const std::vector<std::string>& words, const std::string& name) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == name && i + 1 < words.size()) {
      return words[i + 1];
    }
    if (words[i].rfind(name + "=", 0) == 0) {
      return words[i].substr(name.size() + 1);
    }
  }
  return "";
}

}  // namespace tessera::engine
