// Which parts of a training state lie where: what each rank owns, who has a second copy of it, and
// how a file says what is in it.
//
// Elements count in the whole tensor, as in ParameterPlan. Independent replicas have a copy of each
// tensor for every replica, which are numbered like them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "partitioner/plan/plan.h"

namespace tessera::engine {

enum class ArrayKind { Values, First, Second, OfRank };

// An array of which several ranks may keep parts.
struct ArrayName {
  int tensor = 0;  // in Plan::parameters; of a rank's own state: the rank
  ArrayKind kind = ArrayKind::Values;
  int copy = 0;

  friend auto operator<=>(const ArrayName&, const ArrayName&) = default;
};

struct KeptPart {
  ArrayName array;
  Range elements;

  friend bool operator==(const KeptPart&, const KeptPart&) = default;
};

// The arrays of the tensors, without states of ranks; of copy 0.
[[nodiscard]] std::vector<ArrayName> arrays_of(const partitioner::Plan& plan, bool adam);

// What a rank owns, in the order of the tensors, and `own` elements of state of its own.
[[nodiscard]] std::vector<KeptPart> owned_parts(const partitioner::Plan& plan,
                                                bool adam,
                                                int rank,
                                                Index own);

// The rank that has a second copy of what each one owns, on another device, where there is one; -1:
// none has. `devices` has the same text for ranks on the same device, and an empty one for those
// that take no part. What a device loses lies on the next one, shared among its ranks.
[[nodiscard]] std::vector<int> keepers(const std::vector<std::string>& devices);

// Whether a rank computes with such elements, so that the parameter all-gather brings them to it.
// Not so running statistics, which may differ until they are next needed.
[[nodiscard]] bool is_gathered_by(const partitioner::Plan& plan, const KeptPart& part, int rank);

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
