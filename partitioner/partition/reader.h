// Who reads the pictures: every rank the part that it requires, or one rank, which sends the others
// theirs and the targets.

#pragma once

#include <optional>

#include "partitioner/network/network.h"

namespace tessera::partitioner {

class Reader {
 public:
  constexpr Reader() = default;  // every rank
  [[nodiscard]] static constexpr Reader every_rank() { return {}; }
  [[nodiscard]] static constexpr Reader rank(int rank) { return Reader(rank); }

  // The rank that reads for all; none where every rank reads.
  [[nodiscard]] constexpr std::optional<int> single_rank() const { return rank_; }
  [[nodiscard]] constexpr bool is_every_rank() const { return !rank_.has_value(); }
  [[nodiscard]] constexpr bool reads(int rank) const { return rank_.value_or(rank) == rank; }
  // False of a single rank that is not one of `ranks`.
  [[nodiscard]] constexpr bool is_among(int ranks) const {
    return !rank_ || (*rank_ >= 0 && *rank_ < ranks);
  }
  // The lowest rank that reads.
  [[nodiscard]] constexpr int first_rank() const { return rank_.value_or(0); }

  // Whether groups that read a map get it by messages: all maps but an image that every rank reads.
  [[nodiscard]] constexpr bool is_sent(int map) const { return map != kImage || rank_.has_value(); }

  friend bool operator==(const Reader&, const Reader&) = default;

 private:
  explicit constexpr Reader(int rank) : rank_(rank) {}

  std::optional<int> rank_;
};

}  // namespace tessera::partitioner
