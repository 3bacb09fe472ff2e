#include "engine/run_files/run_summary.h"

#include "engine/files/json_text.h"
#include "engine/run_files/names.h"
#include "engine/run_files/record_fields.h"

namespace tessera::engine {

static auto fields_of(const RunRank& /*rank*/) {
  return std::tuple{Field("rank", &RunRank::rank),
                    Field("host", &RunRank::host),
                    Field("threads", &RunRank::threads)};
}

static auto fields_of(const PictureCacheUse& /*cache*/) {
  return std::tuple{Field("place", &PictureCacheUse::place),
                    Field("bytes", &PictureCacheUse::bytes, 0),
                    Field("kept", &PictureCacheUse::kept, 0),
                    Field("decoded", &PictureCacheUse::decoded, 0)};
}

static auto fields_of(const RunSummary& /*summary*/) {
  return std::tuple{Field("state", &RunSummary::state),
                    Field("reason", &RunSummary::reason),
                    Field("exit_code", &RunSummary::exit_code),
                    Field("started", &RunSummary::started),
                    Field("ended", &RunSummary::ended, Absent::Null),
                    Field("version", &RunSummary::version),
                    Field("model", &RunSummary::model),
                    Field("data", &RunSummary::data),
                    Field("command", &RunSummary::command),
                    Field("first_step", &RunSummary::first_step),
                    Field("last_step", &RunSummary::last_step),
                    Field("epoch_steps", &RunSummary::epoch_steps),
                    Field("batch", &RunSummary::batch),
                    Field("seed", &RunSummary::seed),
                    Field("augment_variants", &RunSummary::augment_variants, Absent::LeftOut),
                    Field("replicas", &RunSummary::replicas),
                    Field("sync", &RunSummary::sync),
                    Field("gradient_precision", &RunSummary::gradient_precision),
                    Field("exact", &RunSummary::exact),
                    Field("not_exact", &RunSummary::inexact),
                    Field("training_pictures", &RunSummary::training_pictures),
                    Field("testing_pictures", &RunSummary::testing_pictures),
                    Field("class_names", &RunSummary::class_names),
                    Field("ranks", &RunSummary::ranks),
                    Field("predicted_step_s", &RunSummary::predicted_step_s),
                    Field("memory_limit_bytes", &RunSummary::memory_limit_bytes, 0),
                    Field("sent_bytes", &RunSummary::sent_bytes),
                    Field("sent_bytes_by_rank", &RunSummary::sent_bytes_by_rank),
                    Field("sent_steps", &RunSummary::sent_steps),
                    Field("written_bytes", &RunSummary::written_bytes, 0),
                    Field("written_s", &RunSummary::written_s),
                    Field("cache", &RunSummary::cache)};
}

std::string text_of(const RunSummary& summary) {
  return record_text(summary, 1) + "\n";
}

std::optional<RunSummary> run_summary(std::string_view text) {
  const RecordJson json = RecordJson::parse(text, nullptr, false);
  return json.is_object() ? std::optional(record_of<RunSummary>(json)) : std::nullopt;
}

std::optional<RunSummary> read_run_summary(const std::filesystem::path& file) {
  return run_summary(read_json_text(file).value_or(""));
}

std::string state_of_run(const std::filesystem::path& folder) {
  return read_run_summary(folder / run_file::kRun).value_or(RunSummary()).state;
}

}  // namespace tessera::engine
