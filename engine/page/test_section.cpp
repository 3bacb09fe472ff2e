#include "engine/page/test_section.h"

#include <fmt/format.h>

#include "engine/run_files/names.h"
#include "engine/run_files/test_results.h"

namespace tessera::engine {

namespace {

std::string note_of(Test test, Index step, Index best_step) {
  if (step == 0) {
    return "";
  }
  std::string note = fmt::format("After step {}", step);
  if (step == best_step) {
    note += fmt::format("{}: its weights are in {}",
                        test == Test::Last ? ", the best test so far" : "",
                        run_file::kBest);
  } else if (best_step > 0) {
    note += fmt::format("; the best test was after step {}, see below", best_step);
  }
  return "<p class=\"note\">" + note + ".</p>\n";
}

}  // namespace

PageSection test_section(const RunData& run,
                         Test test,
                         const TestWords& words,
                         std::optional<std::string> (*html_of)(const std::string& evaluation,
                                                               const std::string& prefix)) {
  const bool best = test == Test::Best;
  const std::string prefix = best ? "best-" : "";
  PageSection section{
      .id = prefix + "classes",
      .title = fmt::format("{} in the {} test", words.title, best ? "best" : "last")};
  const std::string& evaluation = best ? run.best_evaluation_json : run.evaluation_json;
  const Index step = test_head(evaluation).step;
  const Index best_step = test_head(run.best_evaluation_json).step;
  if (best && (step == 0 || step == test_head(run.evaluation_json).step)) {
    return section;
  }
  if (evaluation.empty()) {
    section.missing = fmt::format("{}: {} is missing.", words.missing, run_file::kEvaluation);
    return section;
  }
  if (const auto html = html_of(evaluation, prefix)) {
    section.html = html->empty() ? "" : note_of(test, step, best_step) + *html;
  } else {
    section.missing = fmt::format("{}: {} is not what this program writes.",
                                  words.missing,
                                  best ? run_file::kBestEvaluation : run_file::kEvaluation);
  }
  return section;
}

}  // namespace tessera::engine
