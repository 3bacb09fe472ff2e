#include "engine/comm/texts_of_ranks.h"

#include "engine/system/host_name.h"

namespace tessera::engine {

std::vector<std::string> texts_of_ranks(const Communicator& communicator, const std::string& mine) {
  std::vector<std::string> texts;
  for (const auto& bytes : communicator.gather_all(bytes_of(mine.data(), std::ssize(mine)))) {
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return texts;
}

// A zero travels behind each text.
std::vector<std::vector<std::string>> lists_of_ranks(const Communicator& communicator,
                                                     const std::vector<std::string>& mine) {
  std::string joined;
  for (const std::string& text : mine) {
    joined += text + '\0';
  }
  std::vector<std::vector<std::string>> lists;
  for (const std::string& theirs : texts_of_ranks(communicator, joined)) {
    std::vector<std::string>& list = lists.emplace_back();
    for (std::size_t begin = 0; begin < theirs.size();) {
      const std::size_t end = theirs.find('\0', begin);
      list.push_back(theirs.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return lists;
}

std::vector<std::string> hosts_of_ranks(const Communicator& communicator) {
  return texts_of_ranks(communicator, host_name());
}

}  // namespace tessera::engine
