// How a file of kept state says what is in it. Which parts lie where is the plan's:
// partitioner/plan/kept_parts.h.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "partitioner/plan/kept_parts.h"

namespace tessera::engine {

using partitioner::ArrayKind;
using partitioner::ArrayName;
using partitioner::KeptPart;

struct StepLoss {
  Index step = 0;
  double loss = 0;
  double learning_rate = 0;

  friend bool operator==(const StepLoss&, const StepLoss&) = default;
};

// What a file says of one of its contents. Its floats are those of the parts, one after another.
struct KeptText {
  std::string network;      // fingerprint
  std::uint64_t start = 0;  // the same number on all ranks that were started together
  std::string plan;         // fingerprint
  bool adam = false;        // else momentum, which keeps something else in the same arrays
  int copies = 1;
  bool first_learns = false;  // of the copies, for all of them; else what they have in common is
                              // their average
  Index images_seen = 0;
  std::vector<StepLoss> latest = {};  // steps, the last one is that of the content
  std::vector<KeptPart> parts = {};

  friend bool operator==(const KeptText&, const KeptText&) = default;
};

[[nodiscard]] std::string to_text(const KeptText& text);

// Makes such texts step after step, in little time.
class KeptTexts {
 public:
  // What stays the same; its images and latest steps are not looked at.
  explicit KeptTexts(const KeptText& text);

  // At most so many of the latest steps are in a text, and it has at most so many bytes.
  static constexpr std::size_t kLatest = 100;
  [[nodiscard]] Index most_bytes() const;

  [[nodiscard]] std::string after(const StepLoss& step, Index images_seen);

 private:
  std::string unchanging_;          // without the bracket at its end
  std::deque<std::string> latest_;  // of each step
};

// Nothing where a text is not one of these, or where its parts are not so many floats together.
[[nodiscard]] std::optional<KeptText> parse_kept_text(const std::string& text, Index floats);

}  // namespace tessera::engine
