#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>

#include "partitioner/balance/class_balance.h"
#include "partitioner/balance/csv_table.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/number_text.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/regular_file.h"

namespace tessera::partitioner {

namespace {

constexpr std::size_t kMostClasses = 10000;

std::optional<Index> whole_number(std::string_view text) {
  return parsed_number<Index>(text, 0, kMostSamples);
}

class ClassTable {
 public:
  ClassTable(std::string name, const std::vector<std::string>& devices)
      : name_(std::move(name)), devices_(devices) {}

  ClassSamples read(const std::string& text) {
    for (const CsvRow& row : parse_csv(text, name_)) {
      line_ = row.line;
      if (samples_.names.empty()) {
        read_head(row.cells);
      } else {
        read_device(row.cells);
      }
    }
    if (samples_.names.empty()) {
      fail("expected a first line \"device,CLASS,CLASS,...\"");
    }
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      if (samples_.counts[i].empty()) {
        throw InputError(name_, 0, fmt::format("there is no line of device {}", named(i)));
      }
    }
    return std::move(samples_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(name_, line_, message);
  }

  [[nodiscard]] std::string named(std::size_t device) const {
    return fmt::format("{} ({})", device, printable_start(devices_[device]));
  }

  void read_head(const std::vector<std::string>& cells) {
    if (cells.size() < 2 || cells.size() > kMostClasses || cells.front() != "device") {
      fail("expected a first line \"device,CLASS,CLASS,...\"");
    }
    samples_.names.assign(cells.begin() + 1, cells.end());
    std::set<std::string> different;
    for (const std::string& name : samples_.names) {
      if (name.empty() || !different.insert(name).second) {
        fail(name.empty() ? "a class has no name"
                          : fmt::format("class {} is there twice", printable_start(name)));
      }
    }
    samples_.counts.resize(devices_.size());
  }

  void read_device(const std::vector<std::string>& cells) {
    std::vector<Index>& counts = samples_.counts[device_of(cells.front())];
    if (!counts.empty()) {
      fail(fmt::format("device {} has a line already", printable_start(cells.front())));
    }
    if (cells.size() != samples_.names.size() + 1) {
      fail(fmt::format(
          "{} numbers, and there are {} classes", cells.size() - 1, samples_.names.size()));
    }
    for (std::size_t i = 1; i < cells.size(); ++i) {
      const std::optional<Index> count = whole_number(cells[i]);
      if (!count) {
        fail(fmt::format(
            "\"{}\" is not an integer from 0 to {}", printable_start(cells[i]), kMostSamples));
      }
      counts.push_back(*count);
    }
  }

  [[nodiscard]] std::size_t device_of(const std::string& text) const {
    const auto named = std::find(devices_.begin(), devices_.end(), text);
    if (named != devices_.end() && std::find(named + 1, devices_.end(), text) == devices_.end()) {
      return static_cast<std::size_t>(named - devices_.begin());
    }
    const std::optional<Index> number = whole_number(text);
    if (!number || *number >= std::ssize(devices_)) {
      fail(fmt::format("there is no device {}: give its name, or its number from 0 to {}",
                       printable_start(text),
                       std::ssize(devices_) - 1));
    }
    return static_cast<std::size_t>(*number);
  }

  std::string name_;
  const std::vector<std::string>& devices_;
  int line_ = 0;
  ClassSamples samples_;
};

}  // namespace

Index ClassSamples::of_device(std::size_t device) const {
  return std::accumulate(counts[device].begin(), counts[device].end(), Index{0});
}

Index ClassSamples::of_class(std::size_t at) const {
  return std::accumulate(
      counts.begin(), counts.end(), Index{0}, [at](Index sum, const std::vector<Index>& of_device) {
        return sum + of_device[at];
      });
}

Index ClassSamples::all() const {
  Index all = 0;
  for (std::size_t device = 0; device < counts.size(); ++device) {
    all += of_device(device);
  }
  return all;
}

ClassSamples parse_class_samples(const std::string& text,
                                 const std::string& name,
                                 const std::vector<std::string>& devices) {
  return ClassTable(name, devices).read(text);
}

ClassSamples read_class_samples(const std::filesystem::path& path,
                                const std::vector<std::string>& devices) {
  constexpr Index kMostBytes = Index{1} << 26U;
  return parse_class_samples(
      read_regular_file(path, "a table of classes (CSV)", kMostBytes), path.string(), devices);
}

std::vector<std::vector<Index>> samples_after(const ClassSamples& classes,
                                              const std::vector<ClassMove>& moves) {
  std::vector<std::vector<Index>> counts = classes.counts;
  for (const ClassMove& move : moves) {
    const auto at = static_cast<std::size_t>(move.of_class);
    counts[static_cast<std::size_t>(move.from)][at] -= move.count;
    counts[static_cast<std::size_t>(move.to)][at] += move.count;
  }
  return counts;
}

double largest_deviation(const ClassSamples& classes,
                         const std::vector<std::vector<Index>>& counts) {
  const auto all = static_cast<double>(classes.all());
  double largest = 0;
  for (const std::vector<Index>& of_device : counts) {
    const auto samples =
        static_cast<double>(std::accumulate(of_device.begin(), of_device.end(), Index{0}));
    for (std::size_t at = 0; samples > 0 && at < of_device.size(); ++at) {
      const double share = static_cast<double>(classes.of_class(at)) / all;
      if (share > 0) {
        const double its = static_cast<double>(of_device[at]) / samples;
        largest = std::max(largest, std::abs(its - share) / share);
      }
    }
  }
  return largest;
}

}  // namespace tessera::partitioner
