// What belongs to a trained model beside its weights: what values its pixels take, how a picture
// becomes its input, and what its outputs are called. A checkpoint keeps it, so that whoever uses
// the weights prepares pictures as training did.
//
// mean and stddev are those in effect, one number per channel, whatever they came from: --mean and
// --std, or the 0..1 or -1..1 of the model file. Class names that are only numbers in order say
// nothing and are left out: `class_names` is empty then.

#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/data/batch/augment.h"

namespace tessera::engine {

struct Preparation {
  std::vector<float> mean;
  std::vector<float> stddev;
  std::vector<std::string> class_names;
  partitioner::MapShape input;    // the network's
  partitioner::MapShape picture;  // what pictures are scaled to before [crop] cuts the input out
  std::string resize;             // the rule by which they are scaled

  friend bool operator==(const Preparation&, const Preparation&) = default;
};

// Key of the record in a file's metadata.
inline constexpr const char* kPreparationKey = "preparation";

[[nodiscard]] Preparation preparation_of(const RenderingRules& rules,
                                         const std::vector<std::string>& class_names);

// One line of JSON, and back. Throws InputError that starts with `where` where it is none.
[[nodiscard]] std::string to_json(const Preparation& preparation);
[[nodiscard]] Preparation parse_preparation(const std::string& json, const std::string& where);

// What a file of weights says of it, on all ranks; nothing where the file has no such record, as
// Darknet's and old checkpoints. All ranks call this together; only rank 0 reads.
[[nodiscard]] std::optional<Preparation> stored_preparation(const std::filesystem::path& path,
                                                            const Communicator& communicator);

// What the command line says about values, and for what it does not say what was stored.
[[nodiscard]] PixelConvention convention_in_effect(const PixelConvention& given,
                                                   const std::optional<Preparation>& stored);

// How pictures were prepared otherwise in training than they are now, in words that follow the
// file's name: "was trained with mean 0.5, now it is 0.4"; nothing where they were not.
[[nodiscard]] std::optional<std::string> pixel_difference(const Preparation& stored,
                                                          const Preparation& now);

// The first class that is another one, likewise; nothing where all are alike or either side has no
// names.
[[nodiscard]] std::optional<std::string> class_difference(const Preparation& stored,
                                                          const Preparation& now);

}  // namespace tessera::engine
