#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "engine/chart/line_chart.h"
#include "engine/chart/markup.h"
#include "engine/chart/matrix_chart.h"
#include "engine/page/sections.h"
#include "engine/page/test_section.h"
#include "engine/run_files/test_results.h"

namespace tessera::engine {

namespace {

std::string share_cell(double share) {
  return quantity_text(share, Unit::Share);
}

// A table of the three programs' figures.
Table figures_table(const DetectionResults& result, const TestHead& head) {
  Table table{{"program", "value"}, {}};
  const auto add = [&](const char* name, double value) {
    table.rows.push_back({name, share_cell(value)});
  };
  const auto coco = [&](const char* name, const char* key) {
    const auto found = result.coco.find(key);
    add(name, found == result.coco.end() ? kUnknown : found->second);
  };
  coco("COCO, IoU 0.50 to 0.95", "AP");
  coco("COCO, IoU 0.50", "AP50");
  coco("COCO, IoU 0.75", "AP75");
  coco("COCO, small objects", "APs");
  coco("COCO, medium objects", "APm");
  coco("COCO, large objects", "APl");
  add("VOC up to 2009, 11 recalls", result.voc_11_points);
  add("VOC from 2010, all recalls", result.voc_all_points);
  add("Darknet, all recalls", head.map50);
  return table;
}

const DetectedClass* class_at(const DetectionResults& result, Index label) {
  const bool is_there = label < std::ssize(result.classes);
  return is_there ? &result.classes[static_cast<std::size_t>(label)] : nullptr;
}

double ap_of(const DetectionResults& result, Index label) {
  const DetectedClass* const found = class_at(result, label);
  return found != nullptr && known(found->ap50) ? found->ap50 : 0;
}

// As many as have colours of their own beside the mean: of more classes the best and the worst.
std::vector<ClassCurves> drawn_curves(const DetectionResults& result) {
  constexpr std::size_t kMost = kColours - 1;
  std::vector<ClassCurves> curves =
      result.curves ? result.curves->classes : std::vector<ClassCurves>();
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

LineChart curve_chart(const DetectionResults& result,
                      const std::string& id,
                      const char* title,
                      const char* x_name,
                      std::vector<double> ClassCurves::*values) {
  LineChart chart;
  chart.id = id;
  chart.title = title;
  chart.x_name = x_name;
  chart.x_unit = Unit::Share;
  chart.y_unit = Unit::Share;
  chart.from_zero = true;
  chart.y_most = 1;
  const std::vector<ClassCurves> drawn = drawn_curves(result);
  int colour = 0;
  for (const ClassCurves& each : drawn) {
    const DetectedClass* const found = class_at(result, each.label);
    const std::string name = found == nullptr ? fmt::format("{}", each.label) : found->name;
    chart.series.push_back(
        {name, curve_points(each.*values), ++colour % kColours, LineLook::Faint});
  }
  const MeanCurves curves = result.curves.value_or(MeanCurves());
  const ClassCurves mean{.precision = curves.precision, .f1 = curves.f1};
  chart.series.push_back({"mean", curve_points(mean.*values), 0});
  if (drawn.size() < curves.classes.size()) {
    chart.note =
        "The mean of all classes, and of the classes the three with the highest and the "
        "three with the lowest average precision.";
  }
  return chart;
}

LineChart f1_chart(const DetectionResults& result, const std::string& prefix) {
  LineChart chart =
      curve_chart(result, prefix + "f1", "F1 of boxes from a score on", "score", &ClassCurves::f1);
  if (result.curves && known(result.curves->best_f1)) {
    const std::string best = fmt::format("The highest mean is {}, at a score of {:.2f}.",
                                         share_cell(result.curves->best_f1),
                                         result.curves->best_f1_score);
    chart.marks.push_back({result.curves->best_f1_score, "", best});
    chart.note = best + (chart.note.empty() ? "" : " ") + chart.note;
  }
  return chart;
}

MatrixChart found_chart(const DetectionResults& result, const std::string& prefix) {
  MatrixChart chart;
  chart.id = prefix + "confusion";
  chart.title = "Confusion matrix";
  chart.row_name = "object";
  chart.column_name = "found as";
  for (const DetectedClass& each : result.classes) {
    chart.names.push_back(each.name);
  }
  chart.names.emplace_back("background");
  chart.cells = result.confusion;
  if (known(result.score) && known(result.iou)) {
    chart.note = fmt::format(
        "Boxes with a score of {} or more. Each is that of the object of its class that it "
        "overlaps most, by more than {}; where that has one already, of one of another class that "
        "has none; else of background.",
        result.score,
        result.iou);
  }
  return chart;
}

std::string class_table(const DetectionResults& result, const std::string& prefix) {
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
      return (known(a.ap50) ? a.ap50 : 2) < (known(b.ap50) ? b.ap50 : 2);
    });
    classes.resize(kMost);
    note += fmt::format(" The {} of {} classes with the lowest AP.", kMost, result.classes.size());
  }
  Table table{{"class", "objects", "AP", "precision", "recall", "F1", "TP", "FP", "FN"}, {}};
  for (const DetectedClass& each : classes) {
    table.rows.push_back({each.name,
                          fmt::format("{}", each.objects),
                          share_cell(each.ap50),
                          share_cell(each.precision),
                          share_cell(each.recall),
                          share_cell(each.f1),
                          fmt::format("{}", each.right),
                          fmt::format("{}", each.wrong),
                          fmt::format("{}", each.missed)});
  }
  return "<figure id=\"" + prefix +
         "classes-table\"><figcaption><b>Each class</b></figcaption>\n<div "
         "class=\"scroll\">" +
         table_html(table) + "</div>\n" +
         (note.empty() ? "" : "<p class=\"note\">" + escaped(note) + "</p>\n") + "</figure>\n";
}

std::string figures_html(const Table& figures, const std::string& prefix) {
  return "<figure id=\"" + prefix +
         "average-precision\"><figcaption><b>Three programs' mean average "
         "precision</b></figcaption>\n<div class=\"scroll\">" +
         table_html(figures) +
         "</div>\n<p class=\"note\">COCO gives an object to the best box that is left, VOC and "
         "Darknet to the first box that overlaps most with it.</p></figure>\n";
}

std::optional<std::string> detection_html(const std::string& evaluation,
                                          const std::string& prefix) {
  const auto result = detection_results(evaluation);
  if (!result) {
    return std::nullopt;
  }
  std::string html = "<div class=\"grid-of-2\">\n";
  html += line_chart_html(curve_chart(*result,
                                      prefix + "precision-recall",
                                      "Precision over recall",
                                      "recall",
                                      &ClassCurves::precision));
  html += line_chart_html(f1_chart(*result, prefix));
  html += "<div class=\"stack\">\n" + class_table(*result, prefix) +
          figures_html(figures_table(*result, test_head(evaluation)), prefix) + "</div>\n";
  html += matrix_chart_html(found_chart(*result, prefix));
  return html + "</div>\n";
}

}  // namespace

PageSection detection_section(const RunData& run, Test test) {
  return test_section(
      run, test, {"What was found", "What was found of each class"}, detection_html);
}

}  // namespace tessera::engine
