// With what a run trains, as far as a run that goes on from its checkpoint should do the same:
// checkpoints keep it as JSON. What a resumed run is not asked for is taken from there; what it
// does otherwise is said or refused.

#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/layers/layer.h"
#include "engine/train/checkpoints/training_settings.h"

namespace tessera::engine {

// The key of the metadata of a checkpoint.
inline constexpr const char* kTrainingRecordKey = "training";

struct TrainingRecord {
  Index images = 0;          // of a step
  Index subdivisions = 0;    // passes of a step; 0: unknown
  Index pictures = 0;        // of the data set, to train on
  std::string data_digest;   // of that data set; empty: unknown
  Index schedule_steps = 0;  // the length of the schedule, where anything depends on it
  BatchNormMode batch_norm = BatchNormMode::Sync;
  std::string gradient_precision;  // as to_text() writes them
  std::string sync;
  Index replicas = 1;                // that take steps of their own; 1 where all take the same
  double multi_scale = 0;            // by how much the size of the input changes; 0: not at all
  Index augment_variants = 0;        // of each picture; 0: another one in each epoch
  TrainingSettings settings = {};    // of the model file; empty: unknown
  std::vector<std::string> inexact;  // what is not exact in any part of the run, a phrase each
  friend bool operator==(const TrainingRecord&, const TrainingRecord&) = default;
};

// What statistics are called in options and in records; the first is the default.
inline constexpr std::array<std::pair<const char*, BatchNormMode>, 3> kBatchNormModes{
    {{"sync", BatchNormMode::Sync},
     {"frozen", BatchNormMode::Frozen},
     {"tile", BatchNormMode::PerTile}}};
[[nodiscard]] const char* name_of(BatchNormMode mode);

// How --multi-scale says it.
[[nodiscard]] std::string multi_scale_text(double factor);

// parse_training_record(to_json(record), ...) == record. Throws InputError that names `where`.
[[nodiscard]] std::string to_json(const TrainingRecord& record);
[[nodiscard]] TrainingRecord parse_training_record(const std::string& json,
                                                   const std::string& where);

// Of a checkpoint; nothing in files that do not have it. All ranks call this together; errors are
// AgreedErrors.
[[nodiscard]] std::optional<TrainingRecord> stored_training_record(
    const std::filesystem::path& checkpoint, const Communicator& communicator);

// What makes outputs, or the loss of them, other than those that were trained: of layers, and of
// batch normalisation. A phrase like those below; nothing where there is no difference.
[[nodiscard]] std::optional<std::string> output_difference(const TrainingSettings& before,
                                                           const TrainingSettings& now);

// What a run that goes on does otherwise than before, a phrase each that follows the checkpoint's
// name: "was trained on 48 pictures, now there are 47".
[[nodiscard]] std::vector<std::string> differences(const TrainingRecord& before,
                                                   const TrainingRecord& now);

}  // namespace tessera::engine
