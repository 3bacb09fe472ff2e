// A linear program: minimize costs times variables, with bounds on these and on sums of them.
// Solved by Clp, where the program was built with it and its library is there.

#pragma once

#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace tessera::partitioner {

class LinearProgram {
 public:
  static constexpr double kUnbounded = std::numeric_limits<double>::infinity();

  // The number of the variable, counted from 0.
  int add_variable(double cost, double least, double most);

  // least <= sum of coefficients times variables <= most.
  void add_row(const std::vector<std::pair<int, double>>& terms, double least, double most);

  // Values of the variables at an optimum; nothing where there is none.
  [[nodiscard]] std::optional<std::vector<double>> solve() const;

  [[nodiscard]] static bool is_available();

 private:
  struct Rows {
    std::vector<int> starts{0};
    std::vector<int> variables;
    std::vector<double> coefficients;
    std::vector<double> least;
    std::vector<double> most;
  };

  std::vector<double> costs_;
  std::vector<double> least_;
  std::vector<double> most_;
  Rows rows_;
};

}  // namespace tessera::partitioner
