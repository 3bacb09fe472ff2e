// How an error of the user's that one rank finds becomes the same error on all ranks, so that all
// end in order.

#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/comm/communicator.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

// Thrown on all ranks at the same place: every rank may end as it likes, none waits for another.
class AgreedError : public InputError {
 public:
  using InputError::InputError;
};

// Throws AgreedError on all ranks if any of them has a problem. All ranks call this together.
inline void throw_agreed(const Communicator& communicator,
                         const std::optional<std::string>& problem) {
  if (const auto agreed = communicator.agree(problem)) {
    throw AgreedError(*agreed);
  }
}

// Runs `work` on this rank and keeps an InputError for throw_agreed.
template <class Work>
[[nodiscard]] std::optional<std::string> problem_of(Work work) {
  try {
    work();
  } catch (const InputError& error) {
    return error.what();
  }
  return std::nullopt;
}

// Rank 0 does the work; an InputError of it becomes an AgreedError on all ranks. All ranks call
// this together.
template <class Work>
void on_root(const Communicator& communicator, Work work) {
  throw_agreed(communicator, problem_of([&] {
                 if (communicator.rank() == 0) {
                   work();
                 }
               }));
}

// Whether it is so on some rank of those that take part, and on all. All ranks call this together.
[[nodiscard]] inline bool on_any_rank(const Communicator& communicator, bool mine) {
  const std::vector<int> all = communicator.of_ranks(mine ? 1 : 0);
  return std::find(all.begin(), all.end(), 1) != all.end();
}
[[nodiscard]] inline bool on_all_ranks(const Communicator& communicator, bool mine) {
  return !on_any_rank(communicator, !mine);
}

// The result of `work`, which each rank does on its own; AgreedError on all if it throws InputError
// on any.
template <class Work>
[[nodiscard]] auto agreed(const Communicator& communicator, Work work) {
  std::optional<decltype(work())> result;
  throw_agreed(communicator, problem_of([&] { result.emplace(work()); }));
  return std::move(*result);
}

}  // namespace tessera::engine
