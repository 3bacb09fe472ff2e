// A data set of which nothing may be wrong.

#pragma once

#include <filesystem>

#include "engine/data/dataset.h"
#include "partitioner/base/errors.h"

namespace tessera::tests {

inline engine::Dataset open_dataset(const std::filesystem::path& path,
                                    engine::Split split,
                                    Index channels) {
  engine::Dataset dataset = engine::list_dataset(path, split, channels);
  for (const engine::DataProblem& problem : dataset.problems()) {
    if (engine::is_error(problem.fault)) {
      throw InputError(problem.where + ": " + problem.what);
    }
  }
  return dataset;
}

}  // namespace tessera::tests
