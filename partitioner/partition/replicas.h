// Replicas: groups of ranks that each hold the model, and how they are synchronised. Part of the
// decision.
//
// Of `count` replicas, replica r has ranks [r * ranks / count, (r + 1) * ranks / count) and the
// same share of the images of each pass. All are cut alike: a partition of several replicas is that
// of one, repeated along the images.
//
// Synchronised every step they are one model: its gradients are summed over all ranks and its batch
// statistics taken of all images, so nothing tells them from tiles. Synchronised in any other way
// each has parameters, batch statistics and an optimizer of its own, and no message of a pass
// leaves a replica: they are synchronised between the gradients of a step and the next step.

#pragma once

#include <string>

#include "partitioner/base/region.h"

namespace tessera::partitioner {

enum class SyncMode {
  EveryStep,      // one model: exact
  Local,          // parameters are averaged every H steps
  PostLocal,      // gradients are averaged in each step of a first part of the run, then as Local
  ParameterRank,  // the first replica's ranks update for all, by gradients of S steps before
  Gossip,         // after each step, replicas average with one other, in random pairs
};

struct Synchronisation {
  SyncMode mode = SyncMode::EveryStep;
  Index steps = 0;  // H or S, where the mode has one

  friend bool operator==(const Synchronisation&, const Synchronisation&) = default;
};

inline constexpr Index kMostLocalSteps = 1'000'000;
inline constexpr Index kMostStaleness = 64;  // a copy of the parameters is kept for each

// "every-step", "local:8", "post-local:8", "parameter-rank:1", "gossip".
[[nodiscard]] std::string to_text(const Synchronisation& sync);
// Throws InputError where the text is none of these.
[[nodiscard]] Synchronisation parse_synchronisation(const std::string& text);

struct Replicas {
  int count = 1;
  Synchronisation sync = {};

  // Whether each has parameters of its own.
  [[nodiscard]] bool independent() const { return count > 1 && sync.mode != SyncMode::EveryStep; }
  // Whether a replica may be steps ahead of another.
  [[nodiscard]] bool run_ahead() const {
    return independent() && sync.mode == SyncMode::ParameterRank && sync.steps > 0;
  }
  friend bool operator==(const Replicas&, const Replicas&) = default;
};

// Throws InputError where so many replicas cannot have equal shares of the ranks, or of the images
// of a pass.
void expect_even_replicas(int replicas, int ranks, Index batch);

struct Partition;

// The partition of `replicas.count` replicas that are each cut as `one` is, for passes of `batch`
// images each. Ranks of the reader and of the first replica stay as they are.
[[nodiscard]] Partition replicated(const Partition& one, const Replicas& replicas, Index batch);

// The first replica of what replicated() has made.
[[nodiscard]] Partition one_replica(const Partition& partition);

}  // namespace tessera::partitioner
