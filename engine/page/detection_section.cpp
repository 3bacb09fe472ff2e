#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/chart/line_chart.h"
#include "engine/chart/markup.h"
#include "engine/chart/matrix_chart.h"
#include "engine/page/sections.h"
#include "engine/page/test_section.h"

namespace tessera::engine {

using Json = nlohmann::json;

namespace {

double share_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : kUnknown;
}

std::string share_cell(double share) {
  return quantity_text(share, Unit::Share);
}

struct DetectedClass {
  std::string name;
  Index objects = 0;
  double ap = kUnknown;
  double precision = kUnknown;
  double recall = kUnknown;
  double f1 = kUnknown;
  Index right = 0;
  Index wrong = 0;
  Index missed = 0;
};

struct ClassCurves {
  std::size_t label = 0;
  std::vector<double> precision;
  std::vector<double> f1;
};

// evaluation.json of a detector, see detection_report.h.
struct DetectionResult {
  std::vector<DetectedClass> classes;
  std::vector<std::vector<std::int64_t>> confusion;  // empty: too many classes
  double score = kUnknown;                           // from which boxes are counted
  double overlap = kUnknown;
  ClassCurves mean;                 // empty: there were no objects
  std::vector<ClassCurves> curves;  // of some classes
  double best_f1 = kUnknown;
  double best_score = kUnknown;
  Table figures;
  std::string prefix;  // of ids
};

Table figures_table(const Json& json) {
  const Json& coco = json.at("coco");
  Table table{{"program", "value"}, {}};
  const auto add = [&](const char* name, double value) {
    table.rows.push_back({name, share_cell(value)});
  };
  add("COCO, IoU 0.50 to 0.95", share_at(coco, "AP"));
  add("COCO, IoU 0.50", share_at(coco, "AP50"));
  add("COCO, IoU 0.75", share_at(coco, "AP75"));
  add("COCO, small objects", share_at(coco, "APs"));
  add("COCO, medium objects", share_at(coco, "APm"));
  add("COCO, large objects", share_at(coco, "APl"));
  add("VOC up to 2009, 11 recalls", share_at(json, "voc_11_points"));
  add("VOC from 2010, all recalls", share_at(json, "voc_all_points"));
  add("Darknet, all recalls", share_at(json, "map50"));
  return table;
}

// Throws Json::exception where it is something else.
DetectionResult detection_result(const Json& json, const std::string& prefix) {
  DetectionResult result;
  result.prefix = prefix;
  for (const Json& each : json.at("classes")) {
    result.classes.push_back({each.at("name").get<std::string>(),
                              each.value("objects", Index{0}),
                              share_at(each, "ap50"),
                              share_at(each, "precision"),
                              share_at(each, "recall"),
                              share_at(each, "f1"),
                              each.value("right", Index{0}),
                              each.value("wrong", Index{0}),
                              each.value("missed", Index{0})});
  }
  result.figures = figures_table(json);
  result.score = share_at(json, "score");
  result.overlap = share_at(json, "iou");
  if (json.contains("confusion")) {
    result.confusion = json.at("confusion").get<std::vector<std::vector<std::int64_t>>>();
  }
  if (json.contains("curves")) {
    const Json& curves = json.at("curves");
    const auto values = [](const Json& from, const char* key) {
      return from.at(key).get<std::vector<double>>();
    };
    result.mean = {0, values(curves, "precision"), values(curves, "f1")};
    result.best_f1 = share_at(curves, "best_f1");
    result.best_score = share_at(curves, "best_f1_score");
    for (const Json& each : curves.at("classes")) {
      result.curves.push_back(
          {each.at("class").get<std::size_t>(), values(each, "precision"), values(each, "f1")});
    }
  }
  return result;
}

double ap_of(const DetectionResult& result, std::size_t label) {
  const double ap = label < result.classes.size() ? result.classes[label].ap : kUnknown;
  return known(ap) ? ap : 0;
}

// As many as have colours of their own beside the mean: of more classes the best and the worst.
std::vector<ClassCurves> drawn_curves(const DetectionResult& result) {
  constexpr std::size_t kMost = kColours - 1;
  std::vector<ClassCurves> curves = result.curves;
  if (curves.size() > kMost) {
    std::stable_sort(curves.begin(), curves.end(), [&](const auto& a, const auto& b) {
      return ap_of(result, a.label) > ap_of(result, b.label);
    });
    constexpr std::size_t kBest = 3;
    curves.erase(curves.begin() + kBest, curves.end() - kBest);
  }
  return curves;
}

std::vector<Point> curve_points(const std::vector<double>& values) {
  std::vector<Point> points;
  for (std::size_t i = 0; values.size() > 1 && i < values.size(); ++i) {
    points.push_back({static_cast<double>(i) / static_cast<double>(values.size() - 1), values[i]});
  }
  return points;
}

LineChart curve_chart(const DetectionResult& result,
                      const char* id,
                      const char* title,
                      const char* x_name,
                      std::vector<double> ClassCurves::*values) {
  LineChart chart;
  chart.id = result.prefix + id;
  chart.title = title;
  chart.x_name = x_name;
  chart.x_unit = Unit::Share;
  chart.y_unit = Unit::Share;
  chart.from_zero = true;
  chart.y_most = 1;
  const std::vector<ClassCurves> drawn = drawn_curves(result);
  int colour = 0;
  for (const ClassCurves& each : drawn) {
    const std::string name = each.label < result.classes.size() ? result.classes[each.label].name
                                                                : fmt::format("{}", each.label);
    chart.series.push_back(
        {name, curve_points(each.*values), ++colour % kColours, LineLook::Faint});
  }
  chart.series.push_back({"mean", curve_points(result.mean.*values), 0});
  if (drawn.size() < result.curves.size()) {
    chart.note =
        "The mean of all classes, and of the classes the three with the highest and the "
        "three with the lowest average precision.";
  }
  return chart;
}

LineChart f1_chart(const DetectionResult& result) {
  LineChart chart =
      curve_chart(result, "f1", "F1 of boxes from a score on", "score", &ClassCurves::f1);
  if (known(result.best_f1)) {
    const std::string best = fmt::format("The highest mean is {}, at a score of {:.2f}.",
                                         share_cell(result.best_f1),
                                         result.best_score);
    chart.marks.push_back({result.best_score, "", best});
    chart.note = best + (chart.note.empty() ? "" : " ") + chart.note;
  }
  return chart;
}

MatrixChart found_chart(const DetectionResult& result) {
  MatrixChart chart;
  chart.id = result.prefix + "confusion";
  chart.title = "Confusion matrix";
  chart.row_name = "object";
  chart.column_name = "found as";
  for (const DetectedClass& each : result.classes) {
    chart.names.push_back(each.name);
  }
  chart.names.emplace_back("background");
  chart.cells = result.confusion;
  if (known(result.score) && known(result.overlap)) {
    chart.note = fmt::format(
        "Boxes with a score of {} or more. Each is that of the object of its class that it "
        "overlaps most, by more than {}; where that has one already, of one of another class that "
        "has none; else of background.",
        result.score,
        result.overlap);
  }
  return chart;
}

std::string class_table(const DetectionResult& result) {
  constexpr std::size_t kMost = 100;
  std::vector<DetectedClass> classes = result.classes;
  std::string note = known(result.score)
                         ? fmt::format(
                               "AP at IoU 0.5, as Darknet takes it; the rest of boxes with a "
                               "score of {} or more.",
                               result.score)
                         : "";
  if (classes.size() > kMost) {
    std::stable_sort(classes.begin(), classes.end(), [](const auto& a, const auto& b) {
      return (known(a.ap) ? a.ap : 2) < (known(b.ap) ? b.ap : 2);
    });
    classes.resize(kMost);
    note += fmt::format(" The {} of {} classes with the lowest AP.", kMost, result.classes.size());
  }
  Table table{{"class", "objects", "AP", "precision", "recall", "F1", "TP", "FP", "FN"}, {}};
  for (const DetectedClass& each : classes) {
    table.rows.push_back({each.name,
                          fmt::format("{}", each.objects),
                          share_cell(each.ap),
                          share_cell(each.precision),
                          share_cell(each.recall),
                          share_cell(each.f1),
                          fmt::format("{}", each.right),
                          fmt::format("{}", each.wrong),
                          fmt::format("{}", each.missed)});
  }
  return "<figure id=\"" + result.prefix +
         "classes-table\"><figcaption><b>Each class</b></figcaption>\n<div "
         "class=\"scroll\">" +
         table_html(table) + "</div>\n" +
         (note.empty() ? "" : "<p class=\"note\">" + escaped(note) + "</p>\n") + "</figure>\n";
}

std::string figures_html(const DetectionResult& result) {
  return "<figure id=\"" + result.prefix +
         "average-precision\"><figcaption><b>Three programs' mean average "
         "precision</b></figcaption>\n<div class=\"scroll\">" +
         table_html(result.figures) +
         "</div>\n<p class=\"note\">COCO gives an object to the best box that is left, VOC and "
         "Darknet to the first box that overlaps most with it.</p></figure>\n";
}

std::string detection_html(const Json& evaluation, const std::string& prefix) {
  const DetectionResult result = detection_result(evaluation, prefix);
  std::string html = "<div class=\"grid-of-2\">\n";
  html += line_chart_html(curve_chart(
      result, "precision-recall", "Precision over recall", "recall", &ClassCurves::precision));
  html += line_chart_html(f1_chart(result));
  html += "<div class=\"stack\">\n" + class_table(result) + figures_html(result) + "</div>\n";
  html += matrix_chart_html(found_chart(result));
  return html + "</div>\n";
}

}  // namespace

PageSection detection_section(const RunData& run, Test test) {
  return test_section(
      run, test, {"What was found", "What was found of each class"}, detection_html);
}

}  // namespace tessera::engine
