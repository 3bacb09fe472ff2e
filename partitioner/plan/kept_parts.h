// The training state of each step, kept outside the ranks' processes: which parts a rank keeps, and
// who has a second copy of them, so that any device may be lost. How it is kept is the engine's
// matter: engine/recovery.
//
// Elements count in the whole tensor, as in ParameterPlan. Independent replicas have a copy of each
// tensor for every replica, which are numbered like them.

#pragma once

#include <string>
#include <vector>

#include "partitioner/plan/plan.h"

namespace tessera::partitioner {

enum class ArrayKind { Values, First, Second, OfRank, Average };

// What training keeps of each tensor beside its values.
struct TrainedArrays {
  bool adam = false;      // two means of gradients; else a velocity
  bool averages = false;  // of values over steps

  friend bool operator==(const TrainedArrays&, const TrainedArrays&) = default;
};

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
[[nodiscard]] std::vector<ArrayName> arrays_of(const Plan& plan, const TrainedArrays& trained);

// What a rank owns, in the order of the tensors, and `own` elements of state of its own.
[[nodiscard]] std::vector<KeptPart> owned_parts(const Plan& plan,
                                                const TrainedArrays& trained,
                                                int rank,
                                                Index own);

// The rank that has a second copy of what each one owns, on another device, where there is one; -1:
// none has. `devices` has the same text for ranks on the same device, and an empty one for those
// that take no part. What a device loses lies on the next one, shared among its ranks.
[[nodiscard]] std::vector<int> keepers(const std::vector<std::string>& devices);

// Where second copies lie: with a rank on another device that has the part anyway, where there is
// one, else with the keeper of the rank's other parts.
class SecondPlaces {
 public:
  // `devices` as for keepers().
  SecondPlaces(const Plan& plan, std::vector<std::string> devices);

  // -1: nobody.
  [[nodiscard]] int keeper(int owner, const KeptPart& part) const;

 private:
  const Plan& plan_;
  std::vector<std::string> devices_;
  std::vector<int> keepers_;
};

// Whether a rank computes with such elements, so that the parameter all-gather brings them to it,
// or has the optimizer's state of them, which it updates itself. Not so running statistics, which
// may differ until they are next needed.
[[nodiscard]] bool is_gathered_by(const Plan& plan, const KeptPart& part, int rank);

// Whether the state of each step is kept (it is not where replicas may run ahead of each other,
// which have no step in common), and on which devices ranks run: the same text for those on the
// same one, as keepers() wants them. No names: each rank has a device of its own.
struct StateKeeping {
  bool is_on = false;
  std::vector<std::string> devices = {};

  friend bool operator==(const StateKeeping&, const StateKeeping&) = default;
};

// What a rank sends another one after each step, to be kept there.
struct SecondCopy {
  int from = 0;
  int to = 0;
  Index elements = 0;

  friend bool operator==(const SecondCopy&, const SecondCopy&) = default;
};

// Those that send nothing are left out. Without what ranks have of their own, such as what
// compression has left, as the next one.
[[nodiscard]] std::vector<SecondCopy> second_copies(const Plan& plan,
                                                    const TrainedArrays& trained,
                                                    const StateKeeping& keeping);

// Bytes that each rank has of it in memory: two steps of what it owns and of second copies, and
// what it is sending. Without what files say of their content, some KiB.
[[nodiscard]] std::vector<Index> kept_bytes_of_ranks(const Plan& plan,
                                                     const TrainedArrays& trained,
                                                     const StateKeeping& keeping,
                                                     Index scalar_bytes);

}  // namespace tessera::partitioner
