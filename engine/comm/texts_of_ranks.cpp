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

std::vector<std::string> hosts_of_ranks(const Communicator& communicator) {
  return texts_of_ranks(communicator, host_name());
}

}  // namespace tessera::engine
