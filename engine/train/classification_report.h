// What `eval` says of a trained network: for people, within 80 columns and one screen where there
// are at most ten classes, and all of it as JSON.

#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/train/evaluation.h"
#include "engine/train/metrics/classification_metrics.h"

namespace tessera::engine {

// "class 7" where there is no name.
[[nodiscard]] std::string class_name(const std::vector<std::string>& names, std::size_t number);

// Accuracy of single classes, and which are taken for which: a table of all pairs for up to ten
// classes; for more, those with the lowest recall and the pairs that are confused most.
[[nodiscard]] std::string classification_table(const ClassificationMetrics& metrics,
                                               const std::vector<std::string>& names);

// Adds the members of ClassificationResults to `json`, confusion of up to 1000 classes.
void add_classification(nlohmann::ordered_json& json,
                        const ClassificationMetrics& metrics,
                        const std::vector<std::string>& names);

// Rank 0's: the metric's first value, "loss" and "pictures"; of classes what add_classification()
// adds, too, of a detector what add_detection() does.
[[nodiscard]] nlohmann::ordered_json evaluation_json(const EvaluationResult& result,
                                                     const std::vector<std::string>& names);

// On one line; names of classes that are not UTF-8 lose what is not.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& json);

}  // namespace tessera::engine
