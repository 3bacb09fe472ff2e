#include "engine/execution/loss_exchange.h"

#include <cstring>

namespace tessera::engine {

namespace {

// The start of a message; the text of a problem follows, and a byte more, so that an empty text is
// one, too.
struct Head {
  double loss = 0;
  int stop_signal = 0;
};

}  // namespace

void LossExchange::set(const PassOutcome& mine) {
  const Head head{mine.loss, mine.stop_signal};
  std::vector<std::byte> message(sizeof(Head) + (mine.problem ? mine.problem->size() + 1 : 0));
  std::memcpy(message.data(), &head, sizeof(Head));
  if (mine.problem) {
    std::memcpy(message.data() + sizeof(Head), mine.problem->data(), mine.problem->size());
  }
  gathering_.set(message);
}

PassOutcome LossExchange::total() const {
  PassOutcome total;
  for (const std::vector<std::byte>& theirs : gathering_.all()) {
    if (theirs.empty()) {
      continue;  // a rank that takes no part
    }
    Head head;
    std::memcpy(&head, theirs.data(), sizeof(Head));
    total.loss += head.loss;
    total.stop_signal = total.stop_signal != 0 ? total.stop_signal : head.stop_signal;
    if (theirs.size() > sizeof(Head) && !total.problem) {
      const auto* text = reinterpret_cast<const char*>(theirs.data() + sizeof(Head));
      total.problem.emplace(text, theirs.size() - sizeof(Head) - 1);
    }
  }
  return total;
}

}  // namespace tessera::engine
