#include "partitioner/balance/linear_program.h"

#include <memory>

#include "partitioner/base/errors.h"
#include "partitioner/base/late_library.h"

#ifdef TESSERA_HAS_CLP
#include <Clp_C_Interface.h>
#endif

namespace tessera::partitioner {

int LinearProgram::add_variable(double cost, double least, double most) {
  costs_.push_back(cost);
  least_.push_back(least);
  most_.push_back(most);
  return static_cast<int>(costs_.size()) - 1;
}

void LinearProgram::add_row(const std::vector<std::pair<int, double>>& terms,
                            double least,
                            double most) {
  for (const auto& [variable, coefficient] : terms) {
    rows_.variables.push_back(variable);
    rows_.coefficients.push_back(coefficient);
  }
  rows_.starts.push_back(static_cast<int>(rows_.variables.size()));
  rows_.least.push_back(least);
  rows_.most.push_back(most);
}

#ifdef TESSERA_HAS_CLP

namespace {

// Functions of Clp's library, which comes into memory with its numerics when it is asked for: a
// program that trains does without these megabytes.
struct Clp {
  decltype(&Clp_newModel) new_model = nullptr;
  decltype(&Clp_deleteModel) delete_model = nullptr;
  decltype(&Clp_setLogLevel) set_log_level = nullptr;
  decltype(&Clp_loadProblem) load_problem = nullptr;
  decltype(&Clp_addRows) add_rows = nullptr;
  decltype(&Clp_setPerturbation) set_perturbation = nullptr;
  decltype(&Clp_dual) dual = nullptr;
  decltype(&Clp_status) status = nullptr;
  decltype(&Clp_getColSolution) col_solution = nullptr;
};

std::optional<Clp> load_clp() {
  LateLibrary library({"libClp.so.1"});
  Clp clp;
  library.find(clp.new_model, "Clp_newModel");
  library.find(clp.delete_model, "Clp_deleteModel");
  library.find(clp.set_log_level, "Clp_setLogLevel");
  library.find(clp.load_problem, "Clp_loadProblem");
  library.find(clp.add_rows, "Clp_addRows");
  library.find(clp.set_perturbation, "Clp_setPerturbation");
  library.find(clp.dual, "Clp_dual");
  library.find(clp.status, "Clp_status");
  library.find(clp.col_solution, "Clp_getColSolution");
  return library.is_complete() ? std::optional(clp) : std::nullopt;
}

const std::optional<Clp>& clp() {
  static const std::optional<Clp> loaded = load_clp();
  return loaded;
}

}  // namespace

bool LinearProgram::is_available() {
  return clp().has_value();
}

std::optional<std::vector<double>> LinearProgram::solve() const {
  constexpr int kOptimal = 0;
  constexpr int kPerturbed = 50;  // against the many optima of equal devices
  const Clp& with = clp().value();
  const std::unique_ptr<Clp_Simplex, decltype(&Clp_deleteModel)> model(with.new_model(),
                                                                       with.delete_model);
  with.set_log_level(model.get(), 0);
  const auto variables = static_cast<int>(costs_.size());
  const std::vector<CoinBigIndex> no_rows(costs_.size() + 1);
  with.load_problem(model.get(),
                    variables,
                    0,
                    no_rows.data(),
                    nullptr,
                    nullptr,
                    least_.data(),
                    most_.data(),
                    costs_.data(),
                    nullptr,
                    nullptr);
  with.add_rows(model.get(),
                static_cast<int>(rows_.least.size()),
                rows_.least.data(),
                rows_.most.data(),
                rows_.starts.data(),
                rows_.variables.data(),
                rows_.coefficients.data());
  with.set_perturbation(model.get(), kPerturbed);
  with.dual(model.get(), 0);
  if (with.status(model.get()) != kOptimal) {
    return std::nullopt;
  }
  const double* values = with.col_solution(model.get());
  return std::vector<double>(values, values + variables);
}

#else

bool LinearProgram::is_available() {
  return false;
}

std::optional<std::vector<double>> LinearProgram::solve() const {
  expects(false, "a program without Clp solves no linear program");
  return std::nullopt;
}

#endif

}  // namespace tessera::partitioner
