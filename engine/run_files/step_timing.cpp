#include "engine/run_files/step_timing.h"

#include "engine/run_files/record_fields.h"

namespace tessera::engine {

static auto fields_of(const StepTiming& /*timing*/) {
  return std::tuple{Field("t_s", &StepTiming::t_s, 3),
                    Field("step", &StepTiming::step),
                    Field("steps", &StepTiming::steps),
                    Field("rank", &StepTiming::rank),
                    Field("predicted", &StepTiming::predicted, Absent::LeftOut),
                    Field("step_s", &StepTiming::step_s),
                    Field("loading_s", &StepTiming::loading_s),
                    Field("forward_s", &StepTiming::forward_s),
                    Field("backward_s", &StepTiming::backward_s),
                    Field("update_s", &StepTiming::update_s),
                    Field("exchanging_s", &StepTiming::exchanging_s),
                    Field("waiting_s", &StepTiming::waiting_s)};
}

std::string line_of(const StepTiming& timing) {
  return record_text(timing);
}

std::optional<StepTiming> step_timing(const RecordJson& line) {
  return has_count(line, "rank", kMostRanks) ? std::optional(record_of<StepTiming>(line))
                                             : std::nullopt;
}

}  // namespace tessera::engine
