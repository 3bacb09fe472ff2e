#include "engine/run_view/top_screen.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <string_view>
#include <utility>

#include "engine/run_view/curve.h"
#include "engine/run_view/device_rows.h"
#include "engine/run_view/event_list.h"
#include "engine/run_view/run_figures.h"
#include "engine/run_view/tile_drawing.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"
#include "partitioner/base/text_table.h"
#include "partitioner/base/training_figures.h"

namespace tessera::engine {

namespace {

constexpr double kQuiet_s = 20;  // of a run that is going: then it is said

Ink ink_of(RunState state) {
  switch (state) {
    case RunState::Running:
      return Ink::Good;
    case RunState::Finished:
      return Ink::Accent;
    case RunState::Interrupted:
      return Ink::Warn;
    case RunState::Failed:
      return Ink::Bad;
    case RunState::Empty:
      break;
  }
  return Ink::Faint;
}

// Where what is shown is to stand; lines of 0: not at all.
struct Layout {
  int header = 0;           // lines
  bool has_faults = false;  // whether the last of them is of those
  CanvasBox curves;
  CanvasBox more_curves;
  CanvasBox devices;  // with its rule and titles
  int devices_shown = 0;
  int footer = 0;  // its line

  Layout(const RunData& data, const TopView& view) {
    const int devices_known = data.ranks();
    has_faults = view.lines >= 16 && data.faults.faults > 0;
    header = (view.lines >= 16  ? 4
              : view.lines >= 9 ? 3
                                : 2) +
             (has_reason(data) ? 1 : 0) + (has_faults ? 1 : 0);
    footer = view.lines - 1;
    const int body = std::max(footer - header, 0);
    const int around = 2;          // a rule and the titles of columns
    const int curves_least = 6;    // with their rule
    const int without_curves = 4;  // devices, before curves have a place
    devices_shown = std::clamp(devices_known, 0, std::max(body - around, 0));
    if (devices_known > without_curves && body >= around + without_curves + curves_least) {
      devices_shown = std::min(devices_known, body - around - curves_least);
    }
    devices = {0, 0, view.columns, devices_shown > 0 ? devices_shown + around : 0};
    int rest = body - devices.lines;
    const int room_for_more = 34;
    curves = {0, header, view.columns, rest >= curves_least - 1 ? rest : 0};
    if (rest >= room_for_more && view.columns >= 60) {
      more_curves = {0, 0, view.columns, rest * 2 / 5};
      curves.lines -= more_curves.lines;
      more_curves.line = curves.line + curves.lines;
    }
    devices.line = header + curves.lines + more_curves.lines;
  }

  static bool has_reason(const RunData& data) { return !data.reason.empty(); }
};

class TopScreen {
 public:
  TopScreen(const RunData& data, const TopView& view)
      : data_(data),
        view_(view),
        layout_(data, view),
        progress_(progress_of(data)),
        canvas_(view.columns, view.lines, view.style) {}

  [[nodiscard]] std::vector<std::string> text() {
    draw_title();
    draw_header();
    if (layout_.curves.lines > 0) {
      draw_curves();
    }
    if (layout_.more_curves.lines > 0) {
      draw_more_curves();
    }
    if (layout_.devices.lines > 0) {
      draw_device_table();
    }
    draw_footer();
    return canvas_.text();
  }

 private:
  [[nodiscard]] const char* either(const char* unicode, const char* ascii) const {
    return view_.style.either(unicode, ascii);
  }
  // With its number in the middle of the left, "─ loss ──────".
  int rule(int begin, int end, int line, std::string_view title) {
    canvas_.fill(begin, end, line, either("─", "-"), Ink::Faint);
    return title.empty() ? begin
                         : canvas_.write(begin + 1, line, fmt::format(" {} ", title), Ink::Strong);
  }

  void draw_title() {
    const std::string state = fmt::format("{} {}", either("●", "*"), name_of(data_.state));
    const std::string elapsed =
        known(progress_.elapsed_s) ? "  " + duration(progress_.elapsed_s) : "";
    const int state_at =
        std::max(view_.columns - 1 - screen_width(state) - screen_width(elapsed), 0);
    const int after = canvas_.write(1, 0, "tessera", Ink::Accent, state_at - 2);
    canvas_.write(after + 2, 0, data_.folder.string(), Ink::Strong, state_at - after - 3);
    canvas_.write(canvas_.write(state_at, 0, state, ink_of(data_.state)), 0, elapsed);
  }

  // As many of the lines as there is room for, the most useful ones.
  void draw_header() {
    int line = 1;
    const int lines =
        layout_.header - (Layout::has_reason(data_) ? 1 : 0) - (layout_.has_faults ? 1 : 0);
    if (lines >= 4) {
      draw_subject(line++);
    }
    if (Layout::has_reason(data_)) {
      canvas_.write(1, line++, data_.reason, ink_of(data_.state), view_.columns - 2);
    }
    if (lines >= 3) {
      draw_progress(line++);
    }
    draw_numbers(line);
    if (layout_.has_faults) {
      canvas_.write(1, line + 1, faults_text(data_.faults), Ink::Warn, view_.columns - 2);
    }
  }

  void draw_subject(int line) {
    if (data_.state == RunState::Empty) {
      canvas_.write(1, line, "no run is here yet", Ink::Faint);
      return;
    }
    if (!data_.info) {
      canvas_.write(1,
                    line,
                    data_.steps.empty() ? "a run is starting" : "nothing more is known of this run",
                    Ink::Faint);
      return;
    }
    const RunSummary& info = *data_.info;
    const std::string pictures =
        info.training_pictures > 0 ? fmt::format(", {} pictures", info.training_pictures) : "";
    const std::string what = fmt::format("{} on {}{}, batch {}, {}",
                                         info.model,
                                         info.data,
                                         pictures,
                                         info.batch,
                                         counted(std::max(data_.ranks(), 1), "rank"));
    const int room = view_.columns - 2;
    const bool fits = screen_width(what) <= room;
    canvas_.write(1,
                  line,
                  fits ? what
                       : fmt::format("{}, batch {}, {}",
                                     std::filesystem::path(info.model).filename().string(),
                                     info.batch,
                                     counted(std::max(data_.ranks(), 1), "rank")),
                  Ink::Plain,
                  room);
  }

  void draw_progress(int line) {
    if (progress_.last_step <= 0) {
      if (progress_.step > 0) {
        canvas_.write(1, line, fmt::format("step {}", progress_.step));
      }
      return;
    }
    std::string steps = fmt::format("step {} of {}", progress_.step, progress_.last_step);
    if (known(progress_.epochs) && view_.columns >= 60) {
      steps += fmt::format(", epoch {} of {}",
                           epoch_number(progress_.step, progress_.epoch),
                           epoch_number(progress_.last_step, progress_.epochs));
    }
    const double share =
        static_cast<double>(progress_.step) / static_cast<double>(progress_.last_step);
    std::string end = fmt::format("{:.0f} %", std::floor(100 * share));
    if (data_.state == RunState::Running && known(progress_.left_s)) {
      end += fmt::format("  {} left", duration(progress_.left_s));
    }
    const int begin = canvas_.write(1, line, steps) + 2;
    const int stop = view_.columns - 1 - screen_width(end) - 2;
    if (stop - begin >= 5) {
      const int done = begin + static_cast<int>((stop - begin) * std::clamp(share, 0.0, 1.0));
      canvas_.fill(begin, done, line, either("━", "="), Ink::Accent);
      canvas_.fill(done, stop, line, either("─", "-"), Ink::Faint);
    }
    if (stop > begin) {
      canvas_.write_left_of(view_.columns - 1, line, end);
    }
  }

  // As many as fit, the most important ones first.
  void draw_numbers(int line) {
    int column = 1;
    const auto add = [&](const char* label, const std::string& number, const std::string& rest) {
      const std::string before = label[0] == 0 ? "" : std::string(label) + " ";
      if (column + screen_width(before + number + rest) > view_.columns - 1) {
        return;
      }
      column = canvas_.write(column, line, before, Ink::Faint);
      column = canvas_.write(column, line, number, Ink::Strong);
      column = canvas_.write(column, line, rest, Ink::Faint) + 3;
    };
    if (known(progress_.loss)) {
      constexpr int kWide = 100;
      add("loss",
          fmt::format("{:.4f}", progress_.loss),
          view_.columns < kWide ? "" : " in the last step");
    }
    if (known(progress_.accuracy)) {
      add(data_.finds_objects ? "mAP" : "accuracy",
          fmt::format("{:.2f} %", 100 * progress_.accuracy),
          progress_.best_accuracy > progress_.accuracy
              ? fmt::format(", best {:.2f} %", 100 * progress_.best_accuracy)
              : "");
    }
    if (known(progress_.step_s)) {
      add("step",
          readable_seconds(progress_.step_s),
          known(progress_.predicted_step_s)
              ? ", predicted " + readable_seconds(progress_.predicted_step_s)
              : "");
    }
    if (known(progress_.images_per_s)) {
      add("", fmt::format("{:.0f}", progress_.images_per_s), " images/s lately");
    }
    if (known(progress_.learning_rate)) {
      add("lr", fmt::format("{:.4g}", progress_.learning_rate), "");
    }
    if (known(progress_.energy_j)) {
      add("energy", readable_energy(progress_.energy_j), "");
    }
  }

  // Curves on the left, events on the right; tiles between them where there is room.
  void draw_curves() {
    const CanvasBox& all = layout_.curves;
    const int least_events = 34;
    const bool wide = all.columns >= 70;
    int end = all.columns;
    if (wide) {
      const int events = std::max(least_events, all.columns * 2 / 5);
      end -= events;
      rule(end, all.columns, all.line, "events");
      draw_events(canvas_, {end + 1, all.line, events - 1, all.lines}, data_.events);
    }
    const int tiles = std::min(all.lines * 3, 44);
    if (all.columns >= 130 && data_.plan && tiled_group(*data_.plan) != nullptr) {
      end -= tiles;
      draw_tile_panel({end + 1, all.line, tiles - 1, all.lines});
    }
    draw_loss({0, all.line, end, all.lines});
  }

  void draw_panel(const CanvasBox& box,
                  std::string_view title,
                  const std::vector<CurvePoint>& line,
                  const std::vector<CurvePoint>& marks) {
    rule(box.column, box.column + box.columns, box.line, title);
    if (!draw_curve(
            canvas_, {box.column, box.line + 1, box.columns - 1, box.lines - 1}, line, marks)) {
      canvas_.write(box.column + 1, box.line + 1, "nothing yet", Ink::Faint, box.columns - 2);
    }
  }

  void draw_loss(const CanvasBox& box) {
    std::vector<CurvePoint> line;
    for (const StepRecord& step : data_.steps) {
      line.push_back({static_cast<double>(step.step), step.loss});
    }
    std::vector<CurvePoint> marks;
    for (const EvaluationRecord& evaluation : data_.evaluations) {
      marks.push_back({static_cast<double>(evaluation.step), evaluation.test_loss});
    }
    draw_panel(
        box,
        marks.empty() ? std::string("loss") : fmt::format("loss, {} test loss", either("◆", "o")),
        line,
        marks);
  }

  void draw_tile_panel(const CanvasBox& box) {
    const OutlinedGroup& group = *tiled_group(*data_.plan);
    rule(box.column,
         box.column + box.columns,
         box.line,
         group.first == group.last ? fmt::format("tiles of layer {}", group.first)
                                   : fmt::format("tiles of layers {}-{}", group.first, group.last));
    draw_tiles(
        canvas_, {box.column + 1, box.line + 1, box.columns - 2, box.lines - 1}, *data_.plan);
  }

  // At most three curves, of what is known.
  void draw_more_curves() {
    struct Panel {
      const char* title;
      std::vector<CurvePoint> line;
      std::vector<CurvePoint> marks;
    };
    std::vector<Panel> panels = {
        {"seconds of a step", {}, {}},
        {data_.finds_objects ? "mean average precision, %" : "test accuracy, %", {}, {}},
        {"power of all devices, W", {}, {}},
        {"hottest device, C", {}, {}}};
    for (const StepRecord& step : data_.steps) {
      panels[0].line.push_back({static_cast<double>(step.step), step.step_s});
    }
    for (const EvaluationRecord& evaluation : data_.evaluations) {
      panels[1].line.push_back({static_cast<double>(evaluation.step), 100 * evaluation.accuracy});
    }
    panels[1].marks = panels[1].line;
    panels[2].line = by_step(&DeviceSample::power_w, [](double sum, double w) { return sum + w; });
    panels[3].line =
        by_step(&DeviceSample::temperature_c, [](double a, double b) { return std::max(a, b); });
    panels.erase(std::remove_if(panels.begin() + 1,
                                panels.end(),
                                [](const Panel& panel) { return panel.line.empty(); }),
                 panels.end());
    const CanvasBox& all = layout_.more_curves;
    const int most = std::clamp(all.columns / 45, 1, 3);
    panels.resize(std::min(panels.size(), static_cast<std::size_t>(most)));
    const int count = static_cast<int>(panels.size());
    for (int i = 0; i < count; ++i) {
      const int begin = all.columns * i / count;
      draw_panel({begin, all.line, all.columns * (i + 1) / count - begin, all.lines},
                 panels[static_cast<std::size_t>(i)].title,
                 panels[static_cast<std::size_t>(i)].line,
                 panels[static_cast<std::size_t>(i)].marks);
    }
  }

  // What the samples of all devices amount to, second by second, over the step that was done then.
  // They come about once a second: one that is late counts as the one before.
  template <class Join>
  [[nodiscard]] std::vector<CurvePoint> by_step(double DeviceSample::*part, Join join) const {
    constexpr Index kLate_s = 2;
    const Index span_s = data_.joined.samples;  // in a long run they are further apart
    std::map<Index, CurvePoint> seconds;
    for (const auto& [rank, device] : data_.devices) {
      std::map<Index, CurvePoint> own;
      for (const DeviceSample& sample : device.samples) {
        for (Index late = 0; known(sample.*part) && late <= kLate_s; ++late) {
          own[static_cast<Index>(sample.t_s) / span_s + late] = {static_cast<double>(sample.step),
                                                                 sample.*part};
        }
      }
      for (const auto& [second, point] : own) {
        const auto [at, added] = seconds.try_emplace(second, point);
        if (!added) {
          at->second = {std::max(at->second.x, point.x), join(at->second.y, point.y)};
        }
      }
    }
    std::vector<CurvePoint> points;
    for (const auto& [second, point] : seconds) {
      points.push_back(point);
    }
    return points;
  }

  void draw_device_table() {
    const CanvasBox& box = layout_.devices;
    const int after = rule(0, box.columns, box.line, "devices");
    const std::vector<DeviceNow> devices = devices_now(data_);
    const bool timed = std::any_of(devices.begin(), devices.end(), [](const DeviceNow& device) {
      return device.timing.has_value();
    });
    const int legend = 50;
    if (timed && after + 2 + legend <= box.columns) {
      draw_bar_legend(canvas_, after + 1, box.line);
    }
    draw_devices(
        canvas_, {1, box.line + 1, box.columns - 2, box.lines - 1}, devices, first_device());
  }

  [[nodiscard]] int hidden_devices() const {
    return std::max(data_.ranks() - layout_.devices_shown, 0);
  }
  [[nodiscard]] int first_device() const {
    return std::clamp(view_.first_device, 0, hidden_devices());
  }

  void draw_footer() {
    std::vector<std::pair<std::string, Ink>> parts;
    if (data_.state == RunState::Running && view_.quiet_s > kQuiet_s) {
      parts.emplace_back(fmt::format("no news for {}", duration(view_.quiet_s)), Ink::Warn);
    }
    if (hidden_devices() > 0) {
      const char* how = view_.live ? either(", \u2191\u2193 for others", ", j k for others") : "";
      parts.emplace_back(layout_.devices_shown > 0
                             ? fmt::format("devices {}-{} of {}{}",
                                           first_device(),
                                           first_device() + layout_.devices_shown - 1,
                                           data_.ranks(),
                                           how)
                             : fmt::format("no room for {} devices", data_.ranks()),
                         Ink::Plain);
    }
    for (const auto& [file, count] : data_.damaged) {
      parts.emplace_back(
          file.ends_with(".jsonl")
              ? fmt::format("{} of {} left out: damaged", counted(count, "line"), file)
              : fmt::format("{} left out: damaged", file),
          Ink::Warn);
    }
    int end = view_.columns - 1;
    if (view_.live) {
      canvas_.write_left_of(end, layout_.footer, "q quits", Ink::Faint);
      end -= 9;
    }
    int column = 1;
    for (const auto& [text, ink] : parts) {
      if (column < end) {
        column = canvas_.write(column, layout_.footer, text, ink, end - column) + 3;
      }
    }
  }

  const RunData& data_;
  TopView view_;
  Layout layout_;
  RunProgress progress_;
  Canvas canvas_;
};

}  // namespace

std::vector<std::string> top_screen(const RunData& data, const TopView& view) {
  return TopScreen(data, view).text();
}

int last_first_device(const RunData& data, const TopView& view) {
  return std::max(data.ranks() - Layout(data, view).devices_shown, 0);
}

}  // namespace tessera::engine
