#include "engine/replicas/outcome_relay.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "engine/comm/tags.h"

namespace tessera::engine {

OutcomeRelay::OutcomeRelay(const Communicator& communicator,
                           std::vector<int> peers,
                           Index passes,
                           Index steps,
                           std::vector<double> before)
    : peers_(communicator, std::move(peers), kOutcomeTag),
      passes_(passes),
      delay_(steps * passes),
      before_(std::move(before)) {}

std::vector<double> OutcomeRelay::latest_losses() const {
  std::vector<double> steps = before_;
  for (Index pass = 0; pass < std::ssize(losses_); ++pass) {
    if (pass % passes_ == 0) {
      steps.push_back(0);
    }
    steps.back() += losses_[static_cast<std::size_t>(pass)];
  }
  const Index before = std::max<Index>(std::ssize(steps) - delay_ / passes_, 0);
  return {steps.data() + before, steps.data() + steps.size()};
}

OutcomeRelay::~OutcomeRelay() {
  if (std::uncaught_exceptions() > 0) {
    return;
  }
  (void)settle();
  for (Sent& sent : sent_) {
    sent.requests.wait_all();
  }
}

PassOutcome OutcomeRelay::exchange(const PassOutcome& mine) {
  Message message;
  message.loss = mine.loss.total();
  message.stop_signal = mine.stop_signal;
  if (mine.problem) {
    const std::string& text = mine.problem->text;
    const std::size_t size = std::min(text.size(), message.problem.size());
    std::copy_n(text.begin(), size, message.problem.begin());
    message.problem_size = static_cast<int>(size);
    message.problem_kind = mine.problem->kind;
  }
  send(message);
  const Index pass = told_++;
  const Index wanted = pass - delay_;
  while (received_ <= std::max(wanted, pass % passes_)) {
    receive_next();
  }
  if (wanted < 0) {
    PassOutcome first = of_first_[static_cast<std::size_t>(pass % passes_)];
    if (!before_.empty()) {
      // Where there are not so many steps, the first one comes again.
      const Index step = std::ssize(before_) + (pass - pass % passes_ - delay_) / passes_;
      first.loss = {
          pass % passes_ == 0 ? before_[static_cast<std::size_t>(std::max<Index>(step, 0))] : 0};
    }
    return first;
  }
  while (std::ssize(known_) > received_ - wanted) {
    known_.pop_front();
  }
  return known_.front();
}

std::optional<std::string> OutcomeRelay::settle() {
  while (received_ < told_) {
    receive_next();
  }
  for (const PassOutcome& known : known_) {
    if (known.problem) {
      return known.problem->text;
    }
  }
  return std::nullopt;
}

void OutcomeRelay::send(const Message& message) {
  mine_.push_back(message);
  while (!sent_.empty() && sent_.front().requests.all_done()) {
    sent_.pop_front();
  }
  Sent& sent = sent_.emplace_back();
  sent.message = message;
  for (int other = 0; other < peers_.size(); ++other) {
    if (other != peers_.index()) {
      peers_.post_send(sent.requests, other, std::as_bytes(std::span(&sent.message, 1)));
    }
  }
}

// All others' of the next pass.
void OutcomeRelay::receive_next() {
  std::vector<Message> of_replicas(static_cast<std::size_t>(peers_.size()));
  Requests requests;
  for (int other = 0; other < peers_.size(); ++other) {
    const std::span<Message> theirs(&of_replicas[static_cast<std::size_t>(other)], 1);
    if (other == peers_.index()) {
      theirs.front() = mine_.front();
    } else {
      peers_.post_receive(requests, other, std::as_writable_bytes(theirs));
    }
  }
  requests.wait_all();
  mine_.pop_front();
  known_.push_back(sum(of_replicas));
  losses_.push_back(known_.back().loss.total());
  if (std::ssize(losses_) == 2 * delay_) {
    losses_.erase(losses_.begin(), losses_.end() - std::ssize(losses_) / 2);
  }
  if (received_++ < passes_) {
    of_first_.push_back(known_.back());
  }
}

PassOutcome OutcomeRelay::sum(const std::vector<Message>& of_replicas) {
  PassOutcome total;
  for (const Message& theirs : of_replicas) {
    total.loss.sum += theirs.loss;
    total.stop_signal = total.stop_signal != 0 ? total.stop_signal : theirs.stop_signal;
    if (theirs.problem_size >= 0 && !total.problem) {
      const auto size = static_cast<std::size_t>(theirs.problem_size);
      total.problem = {theirs.problem_kind, std::string(theirs.problem.data(), size)};
    }
  }
  return total;
}

}  // namespace tessera::engine
