#include "engine/run_view/run_reader.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "engine/files/json_text.h"
#include "engine/processes/descriptor.h"
#include "engine/run_files/names.h"
#include "engine/run_view/line_follower.h"
#include "engine/run_view/run_limits.h"
#include "engine/run_view/run_lines.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/regular_file.h"

namespace tessera::engine {

namespace fs = std::filesystem;

namespace {

constexpr const char* kDamaged = "{";  // no JSON

// Whether a process has a lock on a run's folder; nothing where that cannot be asked.
std::optional<bool> is_locked(const fs::path& folder) {
  const Descriptor file(
      ::open((folder / run_file::kLock).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.is_open()) {
    return errno == ENOENT ? std::optional(false) : std::nullopt;
  }
  if (::flock(file.number(), LOCK_SH | LOCK_NB) == 0) {
    return false;
  }
  return errno == EWOULDBLOCK ? std::optional(true) : std::nullopt;
}

std::optional<std::string> json_of(const fs::path& path) {
  return read_json_text(path);
}

// What cannot be read is as good as not there.
std::optional<std::string> sheet_of(const fs::path& path) {
  constexpr Index kMost = Index{4} << 20U;
  try {
    return read_regular_file(path, "a file of a run", kMost);
  } catch (const InputError&) {
    return "";
  }
}

// A file that is always replaced as a whole.
class WholeFile {
 public:
  // Of its text; nothing where it cannot be one of a run.
  using Read = std::optional<std::string> (*)(const fs::path&);

  WholeFile(fs::path path, Read read) : path_(std::move(path)), read_(read) {}

  // Its text where it is not the one of the last call; an empty one where it is gone.
  std::optional<std::string> news() {
    struct stat what = {};
    if (::stat(path_.c_str(), &what) != 0 || !S_ISREG(what.st_mode)) {
      return std::exchange(stamp_, Stamp{}) == Stamp{} ? std::nullopt
                                                       : std::optional<std::string>("");
    }
    const Stamp stamp = {static_cast<std::int64_t>(what.st_dev),
                         static_cast<std::int64_t>(what.st_ino),
                         static_cast<std::int64_t>(what.st_size),
                         static_cast<std::int64_t>(what.st_mtim.tv_sec),
                         static_cast<std::int64_t>(what.st_mtim.tv_nsec)};
    if (std::exchange(stamp_, stamp) == stamp) {
      return std::nullopt;
    }
    // What cannot be read is as good as not there; what is too much to be one is damaged.
    const auto text = read_(path_);
    return text ? text : std::optional<std::string>(what.st_size > 0 ? kDamaged : "");
  }

 private:
  using Stamp = std::array<std::int64_t, 5>;
  fs::path path_;
  Read read_;
  Stamp stamp_{};
};

}  // namespace

class RunReader::Files {
 public:
  Files(fs::path folder, Sheets sheets) {
    std::error_code error;
    const fs::file_status status = fs::status(folder, error);
    if (!fs::is_directory(status)) {
      const bool missing = status.type() == fs::file_type::not_found;
      throw InputError(folder.string(),
                       0,
                       missing ? "does not exist: give the folder of a run, the one "
                                 "that `train` was given with --run"
                       : error ? "cannot be read: " + error.message()
                               : "is not a folder: give the folder of a run, the one "
                                 "that `train` was given with --run");
    }
    if (::access(folder.c_str(), R_OK | X_OK) != 0) {
      throw InputError(
          folder.string(), 0, "cannot be read: " + std::generic_category().message(errno));
    }
    add_whole_files(folder);
    if (sheets == Sheets::Read) {
      add_sheet(folder, run_file::kTrainingSheet, &RunData::training_sheet);
      add_sheet(folder, run_file::kTestSheet, &RunData::test_sheet);
    }
    add_lines(folder, run_file::kMetrics, add_metrics_line, [this] {
      data_.steps.clear();
      data_.evaluations.clear();
      data_.joined.steps = 1;
      data_.joined.evaluations = 1;
    });
    add_lines(folder, run_file::kDevices, add_device_line, [this] {
      data_.devices.clear();
      data_.samples = 0;
      data_.joined.samples = 1;
    });
    add_lines(folder, run_file::kEvents, add_event_line, [this] {
      data_.events.clear();
      data_.dropped_events = 0;
      data_.faults = {};
    });
    add_lines(folder, run_file::kTiming, add_timing_line, [this] {
      data_.timings.clear();
      data_.predicted.clear();
    });
    data_.folder = std::move(folder);
  }

  bool read() {
    // Before run.json is read: who ends a run writes the file, then gives the folder back.
    const std::optional<bool> locked = is_locked(data_.folder);
    bool any = false;
    for (Whole& file : whole_) {
      if (const auto text = file.file.news()) {
        any = true;
        const bool good = file.take(*text);
        set_damage(file.name, good || text->empty() ? 0 : 1);
      }
    }
    for (Lines& file : lines_) {
      any = read_lines(file) || any;
    }
    return settle_state(locked) || any;
  }

  [[nodiscard]] const RunData& data() const { return data_; }

 private:
  struct Whole {
    const char* name;
    WholeFile file;
    std::function<bool(const std::string&)> take;  // false: damaged
  };
  struct Lines {
    const char* name;
    LineFollower file;
    bool (*add)(const nlohmann::ordered_json&, RunData&);
    std::function<void()> clear;
    Index damaged = 0;
  };

  void add_whole_files(const fs::path& folder) {
    const auto add = [&](const char* name, std::function<bool(const std::string&)> take) {
      whole_.push_back({name, WholeFile(folder / name, json_of), std::move(take)});
    };
    add(run_file::kRun, [this](const std::string& text) {
      data_.info = run_summary(text);
      return data_.info.has_value();
    });
    add(run_file::kMemory, [this](const std::string& text) {
      const auto ranks = memory_of_ranks(text);
      data_.memory = ranks.value_or(std::vector<RankMemory>());
      return ranks.has_value();
    });
    add(run_file::kPlan, [this](const std::string& text) {
      data_.plan = plan_outline(text);
      return data_.plan.has_value();
    });
    for (const auto& [name, member] :
         {std::pair{run_file::kTimeline, &RunData::timeline_json},
          {run_file::kEvaluation, &RunData::evaluation_json},
          {run_file::kBestEvaluation, &RunData::best_evaluation_json}}) {
      add(name, [this, kept = member](const std::string& text) {
        const bool good = nlohmann::json::accept(text);
        data_.*kept = good ? text : "";
        return good;
      });
    }
  }

  void add_sheet(const fs::path& folder, const char* name, std::string RunData::*sheet) {
    whole_.push_back(
        {name, WholeFile(folder / name, sheet_of), [this, sheet](const std::string& bytes) {
           data_.*sheet = bytes;
           return true;
         }});
  }

  void add_lines(const fs::path& folder,
                 const char* name,
                 bool (*add)(const nlohmann::ordered_json&, RunData&),
                 std::function<void()> clear) {
    lines_.push_back({name, LineFollower(folder / name), add, std::move(clear)});
  }

  bool read_lines(Lines& file) {
    const bool any = file.file.read(
        [&](std::string_view line) {
          const bool whole = is_shallow_json(line) &&
                             file.add(nlohmann::ordered_json::parse(line, nullptr, false), data_);
          file.damaged += whole ? 0 : 1;
          keep_within(RunLimits(), data_);
        },
        [&] {
          file.clear();
          file.damaged = 0;
        });
    return any;
  }

  void set_damage(const char* name, Index count) {
    if (count > 0) {
      data_.damaged[name] = count;
    } else {
      data_.damaged.erase(name);
    }
  }

  // Whether it has changed.
  bool settle_state(std::optional<bool> locked) {
    const RunState before = data_.state;
    const std::string reason = std::exchange(data_.reason, data_.info ? data_.info->reason : "");
    data_.state = data_.info ? state_named(data_.info->state)
                             : state_without_run_json(locked.value_or(false));
    if (data_.info && data_.state == RunState::Running && !locked.value_or(true)) {
      data_.state = RunState::Interrupted;
      data_.reason = "the program was killed, or its machine went down";
    }
    // Half a line of a run that is going is the start of a whole one.
    for (const Lines& file : lines_) {
      const bool cut_off = data_.state != RunState::Running && file.file.is_cut_off();
      set_damage(file.name, file.damaged + (cut_off ? 1 : 0));
    }
    return data_.state != before || data_.reason != reason;
  }

  // Runs of earlier versions wrote memory.json last.
  [[nodiscard]] RunState state_without_run_json(bool locked) const {
    if (locked) {
      return RunState::Running;
    }
    if (data_.steps.empty() && data_.evaluations.empty()) {
      return RunState::Empty;
    }
    return data_.memory.empty() ? RunState::Interrupted : RunState::Finished;
  }

  RunData data_;
  std::vector<Whole> whole_;
  std::vector<Lines> lines_;
};

RunReader::RunReader(fs::path folder, Sheets sheets)
    : files_(std::make_unique<Files>(std::move(folder), sheets)) {}
RunReader::~RunReader() = default;
RunReader::RunReader(RunReader&&) noexcept = default;
RunReader& RunReader::operator=(RunReader&&) noexcept = default;

bool RunReader::read() {
  return files_->read();
}

const RunData& RunReader::data() const {
  return files_->data();
}

RunData read_run(const fs::path& folder) {
  RunReader reader(folder, Sheets::Read);
  reader.read();
  return reader.data();
}

}  // namespace tessera::engine
