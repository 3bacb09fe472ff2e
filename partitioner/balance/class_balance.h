// Which samples of which class to move, when each device is to train on all classes alike: the
// share of a class among the samples of a device is within a tolerance of its share among all.
//
// What is minimized is as in balance.h. Classes make it a linear program: in it samples can be
// divided, and between pairs of devices anything can travel that both ends can send and receive.
// Its optimum is the lower bound; what is found has whole samples, and keeps to the links.

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "partitioner/balance/balance.h"

namespace tessera::partitioner {

struct ClassSamples {
  std::vector<std::string> names;          // of classes
  std::vector<std::vector<Index>> counts;  // [device][class], before moving

  [[nodiscard]] std::size_t devices() const { return counts.size(); }
  [[nodiscard]] std::size_t classes() const { return names.size(); }
  [[nodiscard]] Index of_device(std::size_t device) const;
  [[nodiscard]] Index of_class(std::size_t at) const;
  [[nodiscard]] Index all() const;
};

// A table: a first line "device,CLASS,CLASS,..."; then a line for each device, its name or its
// number from 0, and how many samples of each class it has. Empty lines and those that begin with #
// do not count. `devices` are the names of all. Throws InputError.
[[nodiscard]] ClassSamples parse_class_samples(const std::string& text,
                                               const std::string& name,
                                               const std::vector<std::string>& devices);
[[nodiscard]] ClassSamples read_class_samples(const std::filesystem::path& path,
                                              const std::vector<std::string>& devices);

struct ClassMove {
  int from = 0;
  int to = 0;
  int of_class = 0;
  Index count = 0;
  friend bool operator==(const ClassMove&, const ClassMove&) = default;
};

struct ClassBalance {
  Balance balance;               // moves of all classes together
  std::vector<ClassMove> moves;  // by `from`, `to`, class
};

// Whether this program was built with what solves linear programs.
[[nodiscard]] bool can_balance_classes();

// `tolerance`: a class that is p of all samples is (1 - tolerance) p to (1 + tolerance) p of those
// of each device, rounded to whole samples. The problem's samples are those of all classes
// together, its shards are single samples. Throws InputError where the devices cannot hold them.
[[nodiscard]] ClassBalance balance_classes(const BalanceProblem& problem,
                                           const ClassSamples& classes,
                                           double tolerance);

// Samples of each class on each device after the moves.
[[nodiscard]] std::vector<std::vector<Index>> samples_after(const ClassSamples& classes,
                                                            const std::vector<ClassMove>& moves);

// How far the share of a class on a device is from its share among all, over that share: the most
// of any, on devices that have samples.
[[nodiscard]] double largest_deviation(const ClassSamples& classes,
                                       const std::vector<std::vector<Index>>& counts);

}  // namespace tessera::partitioner
