#include "engine/execution/loss_exchange.h"

#include <cstdint>
#include <cstring>
#include <limits>

#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

// The start of a message; the means of the loss follow, then the text of a problem, and a byte
// more, so that an empty text is one, too.
struct Head {
  double loss = 0;
  LossMean by_objects;
  std::int32_t stop_signal = 0;
  std::int16_t problem_kind = 0;
  std::uint16_t means = 0;
};

std::size_t means_bytes(std::size_t means) {
  return means * sizeof(LossMean);
}

}  // namespace

void LossExchange::set(const PassOutcome& mine) {
  const PassProblem problem = mine.problem.value_or(PassProblem());
  const std::vector<LossMean>& means = mine.loss.means;
  expects(means.size() <= std::numeric_limits<std::uint16_t>::max(), "a network has few heads");
  const Head head{mine.loss.sum,
                  mine.loss.by_objects,
                  mine.stop_signal,
                  static_cast<std::int16_t>(problem.kind),
                  static_cast<std::uint16_t>(means.size())};
  const std::size_t before_text = sizeof(Head) + means_bytes(means.size());
  std::vector<std::byte> message(before_text + (mine.problem ? problem.text.size() + 1 : 0));
  std::memcpy(message.data(), &head, sizeof(Head));
  if (!means.empty()) {
    std::memcpy(message.data() + sizeof(Head), means.data(), means_bytes(means.size()));
  }
  if (!problem.text.empty()) {
    std::memcpy(message.data() + before_text, problem.text.data(), problem.text.size());
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
    LossSum loss{head.loss, std::vector<LossMean>(head.means), head.by_objects};
    if (head.means > 0) {
      std::memcpy(loss.means.data(), theirs.data() + sizeof(Head), means_bytes(head.means));
    }
    const std::size_t before_text = sizeof(Head) + means_bytes(head.means);
    total.loss.add(loss);
    total.stop_signal = total.stop_signal != 0 ? total.stop_signal : head.stop_signal;
    if (theirs.size() > before_text && !total.problem) {
      const auto* text = reinterpret_cast<const char*>(theirs.data() + before_text);
      total.problem = {static_cast<PassProblem::Kind>(head.problem_kind),
                       std::string(text, theirs.size() - before_text - 1)};
    }
  }
  return total;
}

}  // namespace tessera::engine
