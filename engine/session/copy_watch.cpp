#include "engine/session/copy_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tessera::engine {

namespace {

std::string told(const UnequalCopies& unequal, Index step) {
  return fmt::format(
      "after step {} ranks hold different values of {}{}: rank {} than rank {} (run.json names "
      "their hosts); each value is computed by one rank, which sends it to the others, so a device "
      "or its network has damaged some: see what its kernel says (dmesg), and resume without it "
      "from a checkpoint of an earlier step",
      step,
      unequal.parameter,
      unequal.parameters > 1 ? fmt::format(" and {} more", unequal.parameters - 1) : "",
      fmt::join(unequal.ranks, ", "),
      unequal.lowest);
}

}  // namespace

std::optional<std::string> CopyWatch::look(Execution<float>& execution, Index step, Index last) {
  constexpr Index kSteps = 100;  // between comparisons: of their time next to nothing is left
  if (found_ || (step % kSteps != 0 && step != last)) {
    return std::nullopt;
  }
  if (const auto unequal = unequal_copies(execution)) {
    found_ = told(*unequal, step);
  }
  return found_;
}

}  // namespace tessera::engine
