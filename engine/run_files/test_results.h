// evaluation.json and best-evaluation.json: what a test has found out about each class. `eval
// --json` prints the same.

#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/run_files/unknown.h"
#include "partitioner/base/region.h"

namespace tessera::engine {

// Counts by [class][what it was taken for]; empty: too many classes.
using ConfusionCounts = std::vector<std::vector<Index>>;

// Of a classifier. Shares of nothing are unknown, here as below.
struct ClassResult {
  Index label = 0;
  std::string name = {};
  Index pictures = 0;
  Index predicted = 0;
  Index right = 0;
  double recall = kUnknown;
  double precision = kUnknown;
};

struct ClassificationResults {
  double top5 = kUnknown;  // where there are more than five classes
  std::vector<ClassResult> classes = {};
  ConfusionCounts confusion = {};
};

// Of a detector, of boxes from a score on that overlap by so much; the average precision is
// Darknet's.
struct DetectedClass {
  Index label = 0;
  std::string name = {};
  Index objects = 0;
  double ap50 = kUnknown;
  double precision = kUnknown;
  double recall = kUnknown;
  double f1 = kUnknown;
  Index right = 0;
  Index wrong = 0;
  Index missed = 0;
};

// Of 101 values at 0, 0.01 ... 1: precision over recall, and F1 over score.
struct ClassCurves {
  Index label = 0;
  std::vector<double> precision = {};
  std::vector<double> f1 = {};
};

struct MeanCurves {
  std::vector<double> precision = {};  // mean over classes
  std::vector<double> f1 = {};
  double best_f1 = kUnknown;
  double best_f1_score = kUnknown;
  std::vector<ClassCurves> classes = {};  // those that have objects, of up to 100
};

struct DetectionResults {
  std::map<std::string, double> coco = {};  // twelve figures, by its names
  double voc_11_points = kUnknown;
  double voc_all_points = kUnknown;
  double iou = kUnknown;
  double score = kUnknown;
  std::vector<DetectedClass> classes = {};
  ConfusionCounts confusion = {};         // the last of either for background
  std::optional<MeanCurves> curves = {};  // where there is an object
};

// What the file begins with: after which step, and the result of a detector as metrics.jsonl has
// it.
struct TestHead {
  Index step = 0;  // 0: unknown
  double map50 = kUnknown;
};

// Adds the members of a file behind its head.
void add_results(nlohmann::ordered_json& json, const ClassificationResults& results);
void add_results(nlohmann::ordered_json& json, const DetectionResults& results);

// Nothing where the text is not what the file should hold.
[[nodiscard]] std::optional<ClassificationResults> classification_results(std::string_view text);
[[nodiscard]] std::optional<DetectionResults> detection_results(std::string_view text);
[[nodiscard]] TestHead test_head(std::string_view text);

}  // namespace tessera::engine
