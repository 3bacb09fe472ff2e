#include "engine/run_files/test_results.h"

#include "engine/run_files/metrics.h"
#include "engine/run_files/record_fields.h"

namespace tessera::engine {

static auto fields_of(const ClassResult& /*result*/) {
  return std::tuple{Field("class", &ClassResult::label),
                    Field("name", &ClassResult::name, Absent::Refused),
                    Field("pictures", &ClassResult::pictures),
                    Field("predicted", &ClassResult::predicted),
                    Field("right", &ClassResult::right),
                    Field("recall", &ClassResult::recall),
                    Field("precision", &ClassResult::precision)};
}

static auto fields_of(const ClassificationResults& /*results*/) {
  return std::tuple{Field("top5", &ClassificationResults::top5, Absent::LeftOut),
                    Field("classes", &ClassificationResults::classes, Absent::Refused),
                    Field("confusion", &ClassificationResults::confusion, Absent::LeftOut)};
}

static auto fields_of(const DetectedClass& /*result*/) {
  return std::tuple{Field("class", &DetectedClass::label),
                    Field("name", &DetectedClass::name, Absent::Refused),
                    Field("objects", &DetectedClass::objects),
                    Field("ap50", &DetectedClass::ap50),
                    Field("precision", &DetectedClass::precision),
                    Field("recall", &DetectedClass::recall),
                    Field("f1", &DetectedClass::f1),
                    Field("right", &DetectedClass::right),
                    Field("wrong", &DetectedClass::wrong),
                    Field("missed", &DetectedClass::missed)};
}

// Four decimals of a curve are more than anyone can see.
static auto fields_of(const ClassCurves& /*curves*/) {
  return std::tuple{Field("class", &ClassCurves::label),
                    Field("precision", &ClassCurves::precision, 4, Absent::Refused),
                    Field("f1", &ClassCurves::f1, 4, Absent::Refused)};
}

static auto fields_of(const MeanCurves& /*curves*/) {
  return std::tuple{Field("precision", &MeanCurves::precision, 4, Absent::Refused),
                    Field("f1", &MeanCurves::f1, 4, Absent::Refused),
                    Field("best_f1", &MeanCurves::best_f1),
                    Field("best_f1_score", &MeanCurves::best_f1_score),
                    Field("classes", &MeanCurves::classes, Absent::Refused)};
}

static auto fields_of(const DetectionResults& /*results*/) {
  return std::tuple{Field("coco", &DetectionResults::coco, Absent::Refused),
                    Field("voc_11_points", &DetectionResults::voc_11_points),
                    Field("voc_all_points", &DetectionResults::voc_all_points),
                    Field("iou", &DetectionResults::iou),
                    Field("score", &DetectionResults::score),
                    Field("classes", &DetectionResults::classes, Absent::Refused),
                    Field("confusion", &DetectionResults::confusion, Absent::LeftOut),
                    Field("curves", &DetectionResults::curves, Absent::LeftOut)};
}

static auto fields_of(const TestHead& /*head*/) {
  return std::tuple{Field("step", &TestHead::step), Field(kDetectorScore, &TestHead::map50)};
}

namespace {

template <class Results>
std::optional<Results> results_of(std::string_view text) {
  const RecordJson json = RecordJson::parse(text, nullptr, false);
  try {
    auto results = record_of<Results>(json);
    return results.classes.empty() ? std::nullopt : std::optional(std::move(results));
  } catch (const RecordJson::exception&) {
    return std::nullopt;
  }
}

}  // namespace

void add_results(RecordJson& json, const ClassificationResults& results) {
  json.update(record_json(results));
}

void add_results(RecordJson& json, const DetectionResults& results) {
  json.update(record_json(results));
}

std::optional<ClassificationResults> classification_results(std::string_view text) {
  return results_of<ClassificationResults>(text);
}

std::optional<DetectionResults> detection_results(std::string_view text) {
  return results_of<DetectionResults>(text);
}

TestHead test_head(std::string_view text) {
  return record_of<TestHead>(RecordJson::parse(text, nullptr, false));
}

}  // namespace tessera::engine
