// The head of the page: key figures, and what was trained.

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

#include "engine/chart/markup.h"
#include "engine/chart/unit.h"
#include "engine/page/device_series.h"
#include "engine/page/sections.h"
#include "engine/page/step_series.h"
#include "engine/page/words.h"
#include "engine/run_files/names.h"
#include "engine/run_view/run_figures.h"
#include "partitioner/base/quantities.h"
#include "partitioner/base/training_figures.h"

namespace tessera::engine {

namespace {

std::string figure(const char* name, const std::string& value, const std::string& note) {
  return fmt::format(
      "<div><dt>{}</dt><dd>{}<small>{}</small></dd></div>\n", name, escaped(value), escaped(note));
}

std::string accuracy_figure(const RunData& run) {
  const EvaluationRecord* best = nullptr;
  for (const EvaluationRecord& each : run.evaluations) {
    if (known(each.accuracy) && (best == nullptr || each.accuracy > best->accuracy)) {
      best = &each;
    }
  }
  if (best == nullptr) {
    return "";
  }
  std::string note = fmt::format("best, after step {}: {}", best->step, run_file::kBest);
  if (const double last = run.evaluations.back().accuracy; last != best->accuracy) {
    note += "; last " + quantity_text(last, Unit::Share);
  }
  return figure(run.finds_objects ? "Average precision" : "Test accuracy",
                quantity_text(best->accuracy, Unit::Share),
                note);
}

std::string loss_figure(const RunData& run) {
  if (run.steps.empty() || !known(run.steps.back().loss)) {
    return "";
  }
  const StepRecord& last = run.steps.back();
  std::string note = fmt::format("training, of step {}", last.step);
  if (!run.evaluations.empty() && known(run.evaluations.back().test_loss)) {
    note += fmt::format("; test {:.4f}", run.evaluations.back().test_loss);
  }
  return figure("Loss", fmt::format("{:.4f}", last.loss), note);
}

std::string steps_figure(const RunData& run) {
  const Index done = run.last_step_done();
  std::string note;
  if (run.info && run.info->last_step > 0) {
    note = fmt::format("of {}", run.info->last_step);
  }
  if (const double length = run.info ? run.info->steps_of_epoch() : 0; length > 0) {
    const double epochs = static_cast<double>(done) / length;
    note += (note.empty() ? "epoch " : "; epoch ") + fmt::format("{}", epoch_number(done, epochs));
    if (const Index last = run.info->last_step; last > 0) {
      note += fmt::format(" of {}", epoch_number(last, static_cast<double>(last) / length));
    }
  }
  return figure("Steps", fmt::format("{}", done), note);
}

std::string step_time_figure(const RunData& run) {
  std::vector<double> seconds;
  double images_per_s = 0;
  for (const StepRecord& step : run.steps) {
    seconds.push_back(step.step_s);
    images_per_s = known(step.images_per_s) ? step.images_per_s : images_per_s;
  }
  const double median_s = median_known(seconds);
  if (!known(median_s)) {
    return "";
  }
  std::string note = "median";
  if (run.info && known(run.info->predicted_step_s)) {
    note += ", predicted " + quantity_text(run.info->predicted_step_s, Unit::Seconds);
  } else if (run.info && run.info->batch > 0) {
    note +=
        fmt::format(", {:.0f} images per second", static_cast<double>(run.info->batch) / median_s);
  } else if (images_per_s > 0) {
    note += fmt::format(", {:.0f} images per second", images_per_s);
  }
  return figure("Step time", quantity_text(median_s, Unit::Seconds), note);
}

// Time with the run going: interruptions do not count, but for what faults took.
std::string time_figure(const RunData& run) {
  const double last_s = progress_of(run).elapsed_s;
  const std::string note = run.faults.lost_s > 0
                               ? fmt::format("of training and tests, {} of it lost by faults",
                                             duration_text(run.faults.lost_s))
                               : "of training and tests";
  return last_s > 0 ? figure("Time", duration_text(last_s), note) : "";
}

std::string memory_figure(const RunData& run) {
  double most = kUnknown;
  double planned = kUnknown;
  for (const RankMemory& rank : run.memory) {
    if (known(rank.peak_resident_bytes) && !(most >= rank.peak_resident_bytes)) {
      most = rank.peak_resident_bytes;
      planned = static_cast<double>(rank.planned.total());
    }
  }
  std::string note = "the largest peak of any rank";
  if (known(planned)) {
    note += ", planned " + quantity_text(planned, Unit::Bytes);
  }
  for (const auto& [rank, device] : run.devices) {
    for (const DeviceSample& sample : device.samples) {
      if (run.memory.empty() && known(sample.rss_bytes) && !(most >= sample.rss_bytes)) {
        most = sample.rss_bytes;
      }
    }
  }
  return known(most) ? figure("Memory", quantity_text(most, Unit::Bytes), note) : "";
}

std::string energy_figure(const RunData& run) {
  const double total = run_energy_j(run);
  int devices = 0;
  bool estimated = false;
  for (const auto& [rank, device] : run.devices) {
    if (known(device.energy_j)) {
      ++devices;
      estimated = estimated || device.power_source.find("estimat") != std::string::npos ||
                  device.power_source.find("table") != std::string::npos;
    }
  }
  if (!known(total)) {
    return "";
  }
  std::string note = counted(devices, "device");
  note += estimated ? ", estimated" : ", measured";
  return figure("Energy", quantity_text(total, Unit::Joule), note);
}

void add_fact(std::string& html, const char* name, const std::string& value) {
  if (!value.empty()) {
    html += fmt::format(
        "<tr><th scope=\"row\">{}</th><td class=\"text\">{}</td></tr>\n", name, escaped(value));
  }
}

std::string devices_text(const RunData& run) {
  std::set<std::string> hosts;
  int threads = 0;
  for (const RunRank& rank : run.info->ranks) {
    hosts.insert(rank.host);
    threads += rank.threads;
  }
  std::string text =
      counted(std::ssize(run.info->ranks), "rank") + " on " + counted(std::ssize(hosts), "machine");
  constexpr std::size_t kMost = 8;
  if (hosts.size() <= kMost) {
    text += fmt::format(" ({})", fmt::join(hosts, ", "));
  }
  return threads > 0 ? text + ", " + counted(threads, "thread") : text;
}

// "2x2 tiles for layers 0-7, images in 4 for layers 8-12"
std::string cuts_text(const PlanOutline& plan) {
  std::string text;
  for (std::size_t i = 0; i < plan.groups.size();) {
    OutlinedGroup run = plan.groups[i];
    const std::string cut = cut_text(run);
    while (++i < plan.groups.size() && cut_text(plan.groups[i]) == cut) {
      run.last = plan.groups[i].last;
    }
    text += (text.empty() ? "" : "; ") + cut + " for " + layers_name(run);
  }
  return text;
}

// What devices were chosen, by the last event that says so.
std::string choice_text(const RunData& run) {
  std::string text;
  for (const RunEvent& event : run.events) {
    text = event.kind == "choose" ? event.text : text;
  }
  return text;
}

// "2, synchronised by local:8"
std::string replicas_text(const RunSummary& info) {
  return info.replicas > 1 ? fmt::format("{}, synchronised by {}", info.replicas, info.sync) : "";
}

// By rank 0, which has the run folder; pictures that are kept are not in it.
std::string written_text(const RunSummary& info) {
  constexpr double kHour_s = 3600;
  constexpr double kShortest_s = 60;  // for a rate that means something
  if (!known(info.written_bytes)) {
    return "";
  }
  constexpr double kMost = 1e18;  // whatever a file may say
  const auto readable = [&](double bytes) {
    return readable_bytes(static_cast<Index>(std::clamp<double>(bytes, 0, kMost)));
  };
  const std::string all = readable(info.written_bytes) + " by rank 0";
  return known(info.written_s) && info.written_s >= kShortest_s
             ? fmt::format(
                   "{}, {} per hour", all, readable(info.written_bytes / info.written_s * kHour_s))
             : all;
}

// "in memory, 12.3 MiB: found decoded 2280 times, decoded 114 times"
std::string cache_text(const RunSummary& info) {
  if (!info.cache) {
    return "";
  }
  const PictureCacheUse& cache = *info.cache;
  if (cache.place == "off") {
    return "decoded in every epoch (--cache off)";
  }
  const bool in_memory = cache.place == "memory";
  std::string text = "decoded once, in " + (in_memory ? "memory" : cache.place);
  if (known(cache.kept) && known(cache.decoded) && cache.bytes > 0) {
    text += fmt::format(", {}: decoded {:.0f} times, found decoded {:.0f} times",
                        quantity_text(cache.bytes, Unit::Bytes),
                        cache.decoded,
                        cache.kept);
  }
  return text;
}

std::string whole_number(Index number) {
  return number > 0 ? fmt::format("{}", number) : "";
}

}  // namespace

std::string key_figures_html(const RunData& run) {
  const std::string figures = accuracy_figure(run) + loss_figure(run) +
                              (run.steps.empty() ? "" : steps_figure(run)) + step_time_figure(run) +
                              time_figure(run) + memory_figure(run) + energy_figure(run);
  return figures.empty() ? "" : "<dl class=\"figures\">\n" + figures + "</dl>\n";
}

std::string facts_html(const RunData& run) {
  std::string rows;
  if (run.info) {
    const RunSummary& info = *run.info;
    add_fact(rows, "Model", info.model);
    std::string data = info.data;
    if (info.training_pictures > 0) {
      data += fmt::format(" ({} pictures for training, {} for testing, {} classes)",
                          info.training_pictures,
                          info.testing_pictures,
                          info.class_names.size());
    }
    add_fact(rows, "Data", data);
    add_fact(rows, "Pictures", cache_text(info));
    add_fact(rows, "Devices", info.ranks.empty() ? "" : devices_text(run));
    add_fact(rows, "Choice", choice_text(run));
    add_fact(rows, "Cut", run.plan ? cuts_text(*run.plan) : "");
    add_fact(rows, "Replicas", replicas_text(info));
    add_fact(rows, "Not exact", fmt::format("{}", fmt::join(info.inexact, "; ")));
    add_fact(rows, "Messages sent", described(info.sent()));
    add_fact(rows, "Written to disk", written_text(info));
    add_fact(rows, "Images per step", whole_number(info.batch));
    add_fact(rows, "Seed", info.seed > 0 ? fmt::format("{}", info.seed) : "");
    add_fact(rows, "Variants of each picture", whole_number(info.augment_variants));
    add_fact(rows, "Started", info.started);
    add_fact(rows, "Ended", info.ended);
    add_fact(rows, "Command", info.command);
    add_fact(rows, "Version", info.version);
  } else if (run.plan) {
    add_fact(rows, "Cut", cuts_text(*run.plan));
  }
  add_fact(rows, "Folder", run.folder.string());
  return "<table class=\"facts\"><tbody>\n" + rows + "</tbody></table>\n";
}

}  // namespace tessera::engine
