#include "engine/page/test_section.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/files/run_files.h"

namespace tessera::engine {

using Json = nlohmann::json;

namespace {

// After which the test was; 0: unknown.
Index step_of(const std::string& evaluation) {
  const Json json = Json::parse(evaluation, nullptr, false);
  const auto step = json.is_object() ? json.find("step") : json.end();
  return step != json.end() && step->is_number_integer() ? step->get<Index>() : 0;
}

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
                         std::string (*html_of)(const Json& evaluation,
                                                const std::string& prefix)) {
  const bool best = test == Test::Best;
  const std::string prefix = best ? "best-" : "";
  PageSection section{
      .id = prefix + "classes",
      .title = fmt::format("{} in the {} test", words.title, best ? "best" : "last")};
  const std::string& evaluation = best ? run.best_evaluation_json : run.evaluation_json;
  const Index step = step_of(evaluation);
  const Index best_step = step_of(run.best_evaluation_json);
  if (best && (step == 0 || step == step_of(run.evaluation_json))) {
    return section;
  }
  if (evaluation.empty()) {
    section.missing = fmt::format("{}: {} is missing.", words.missing, run_file::kEvaluation);
    return section;
  }
  try {
    section.html = html_of(Json::parse(evaluation), prefix);
    section.html.insert(0, section.html.empty() ? "" : note_of(test, step, best_step));
  } catch (const Json::exception&) {
    section.missing = fmt::format("{}: {} is not what this program writes.",
                                  words.missing,
                                  best ? run_file::kBestEvaluation : run_file::kEvaluation);
  }
  return section;
}

}  // namespace tessera::engine
