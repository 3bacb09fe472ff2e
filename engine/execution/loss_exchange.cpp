#include "engine/execution/loss_exchange.h"

#include <cstring>

namespace tessera::engine {

namespace {

// The start of a message; the text of a problem follows, and a byte more, so that an empty text is
// one, too.
struct Head {
  double loss = 0;
  int stop_signal = 0;
  PassProblem::Kind problem_kind = PassProblem::Kind::Images;
};

}  // namespace

void LossExchange::set(const PassOutcome& mine) {
  const PassProblem problem = mine.problem.value_or(PassProblem());
  const Head head{mine.loss, mine.stop_signal, problem.kind};
  std::vector<std::byte> message(sizeof(Head) + (mine.problem ? problem.text.size() + 1 : 0));
  std::memcpy(message.data(), &head, sizeof(Head));
  std::memcpy(message.data() + sizeof(Head), problem.text.data(), problem.text.size());
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
      total.problem = {head.problem_kind, std::string(text, theirs.size() - sizeof(Head) - 1)};
    }
  }
  return total;
}

}  // namespace tessera::engine
