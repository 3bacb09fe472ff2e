#include "partitioner/balance/class_program.h"

#include <algorithm>
#include <numeric>

#include "partitioner/balance/linear_program.h"
#include "partitioner/base/errors.h"

namespace tessera::partitioner {

namespace {

using Terms = std::vector<std::pair<int, double>>;
constexpr double kUnbounded = LinearProgram::kUnbounded;

// Variables are the two times, the samples of each device after moving, and what comes to it and
// leaves it of each class. Most devices have most classes within their bounds by themselves: rows
// of these bounds are added where they do not hold.
class ClassProgram {
 public:
  ClassProgram(const BalanceProblem& problem, const ClassSamples& classes, double tolerance)
      : problem_(problem), classes_(classes) {
    const auto all = static_cast<double>(std::max<Index>(classes.all(), 1));
    for (std::size_t c = 0; c < classes.classes(); ++c) {
      const double share = static_cast<double>(classes.of_class(c)) / all;
      least_.push_back(std::max(0.0, share * (1 - tolerance)));
      most_.push_back(std::min(1.0, share * (1 + tolerance)));
    }
    add_variables();
    add_devices();
    add_classes();
    add_shares();
  }

  DividedBalance solve() {
    const auto values = program_.solve();
    expects(values.has_value(), "samples in the proportion of all keep to every bound");
    return balance(*values);
  }

 private:
  void add_variables() {
    const auto all = static_cast<double>(classes_.all());
    move_s_ = program_.add_variable(1, 0, kUnbounded);
    epoch_s_ = program_.add_variable(problem_.epochs, 0, kUnbounded);
    for (std::size_t i = 0; i < problem_.size(); ++i) {
      const auto capacity = static_cast<double>(problem_.devices[i].capacity);
      samples_.push_back(program_.add_variable(0, 0, std::min(capacity, all)));
      for (std::size_t c = 0; c < classes_.classes(); ++c) {
        const auto there = static_cast<double>(classes_.counts[i][c]);
        in_.push_back(program_.add_variable(0, 0, all));
        out_.push_back(program_.add_variable(0, 0, there));
      }
    }
  }

  [[nodiscard]] std::size_t at(std::size_t device, std::size_t of_class) const {
    return device * classes_.classes() + of_class;
  }

  void add_devices() {
    for (std::size_t i = 0; i < problem_.size(); ++i) {
      const BalanceDevice& device = problem_.devices[i];
      Terms in{{move_s_, -device.receive_bytes_per_s / problem_.sample_bytes}};
      Terms out{{move_s_, -device.send_bytes_per_s / problem_.sample_bytes}};
      Terms after{{samples_[i], 1}};
      for (std::size_t c = 0; c < classes_.classes(); ++c) {
        in.emplace_back(in_[at(i, c)], 1);
        out.emplace_back(out_[at(i, c)], 1);
        after.emplace_back(in_[at(i, c)], -1);
        after.emplace_back(out_[at(i, c)], 1);
      }
      const auto before = static_cast<double>(classes_.of_device(i));
      program_.add_row(after, before, before);
      program_.add_row({{samples_[i], device.seconds_per_sample}, {epoch_s_, -1}}, -kUnbounded, 0);
      if (device.send_bytes_per_s < kInfiniteRate) {
        program_.add_row(out, -kUnbounded, 0);
      }
      if (device.receive_bytes_per_s < kInfiniteRate) {
        program_.add_row(in, -kUnbounded, 0);
      }
    }
  }

  // As many samples of each class arrive as leave.
  void add_classes() {
    for (std::size_t c = 0; c < classes_.classes(); ++c) {
      Terms terms;
      for (std::size_t i = 0; i < problem_.size(); ++i) {
        terms.emplace_back(in_[at(i, c)], 1);
        terms.emplace_back(out_[at(i, c)], -1);
      }
      program_.add_row(terms, 0, 0);
    }
  }

  // What a device has of a class, there + in - out, is between its least and most share of all that
  // it has.
  void add_shares() {
    for (std::size_t i = 0; i < problem_.size(); ++i) {
      for (std::size_t c = 0; c < classes_.classes(); ++c) {
        const auto there = static_cast<double>(classes_.counts[i][c]);
        const auto terms = [&](double share) {
          return Terms{{in_[at(i, c)], 1}, {out_[at(i, c)], -1}, {samples_[i], -share}};
        };
        if (most_[c] < 1) {
          program_.add_row(terms(most_[c]), -kUnbounded, -there);
        }
        if (least_[c] > 0) {
          program_.add_row(terms(least_[c]), -there, kUnbounded);
        }
      }
    }
  }

  [[nodiscard]] double after(const std::vector<double>& values,
                             std::size_t device,
                             std::size_t of_class) const {
    return static_cast<double>(classes_.counts[device][of_class]) +
           values[static_cast<std::size_t>(in_[at(device, of_class)])] -
           values[static_cast<std::size_t>(out_[at(device, of_class)])];
  }

  [[nodiscard]] DividedBalance balance(const std::vector<double>& values) const {
    DividedBalance result;
    result.total_s = values[static_cast<std::size_t>(move_s_)] +
                     problem_.epochs * values[static_cast<std::size_t>(epoch_s_)];
    for (std::size_t i = 0; i < problem_.size(); ++i) {
      std::vector<double>& of_device = result.after.emplace_back();
      for (std::size_t c = 0; c < classes_.classes(); ++c) {
        of_device.push_back(std::max(0.0, after(values, i, c)));
      }
    }
    return result;
  }

  const BalanceProblem& problem_;
  const ClassSamples& classes_;
  std::vector<double> least_;  // share of a class
  std::vector<double> most_;
  LinearProgram program_;
  int move_s_ = 0;  // variables
  int epoch_s_ = 0;
  std::vector<int> samples_;
  std::vector<int> in_;  // [device * classes + class]
  std::vector<int> out_;
};

}  // namespace

DividedBalance solve_class_program(const BalanceProblem& problem,
                                   const ClassSamples& classes,
                                   double tolerance) {
  return ClassProgram(problem, classes, tolerance).solve();
}

}  // namespace tessera::partitioner
