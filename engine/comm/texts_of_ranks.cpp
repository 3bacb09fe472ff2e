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

std::vector<std::vector<std::string>> lists_of_ranks(const Communicator& communicator,
                                                     const std::vector<std::string>& mine) {
  std::string joined;
  std::vector<std::size_t> my_sizes;
  for (const std::string& text : mine) {
    joined += text;
    my_sizes.push_back(text.size());
  }
  const std::vector<std::vector<std::size_t>> sizes = communicator.of_ranks(my_sizes);
  const std::vector<std::string> texts = texts_of_ranks(communicator, joined);
  std::vector<std::vector<std::string>> lists(sizes.size());
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    std::size_t begin = 0;
    for (const std::size_t size : sizes[rank]) {
      lists[rank].push_back(texts[rank].substr(begin, size));
      begin += size;
    }
  }
  return lists;
}

std::vector<std::string> hosts_of_ranks(const Communicator& communicator) {
  return texts_of_ranks(communicator, host_name());
}

}  // namespace tessera::engine
