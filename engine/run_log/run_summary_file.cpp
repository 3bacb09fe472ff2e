#include "engine/run_log/run_summary_file.h"

#include <chrono>
#include <ctime>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <utility>

#include "engine/files/atomic_file.h"
#include "engine/files/written_bytes.h"
#include "engine/system/clock.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

}  // namespace

void RunSummaryFile::begin(const std::filesystem::path& path, RunSummary summary, bool goes_on) {
  const std::lock_guard lock(mutex_);
  summary_ = std::move(summary);
  summary_.state = "running";
  summary_.exact = summary_.inexact.empty();
  summary_.started = utc_now();
  written_before_ = bytes_written();
  begun_s_ = now_s();
  if (const auto before = goes_on ? read_run_summary(path) : std::nullopt) {
    summary_.started = before->started.empty() ? summary_.started : before->started;
    summary_.first_step = before->first_step > 0 ? before->first_step : summary_.first_step;
  }
  write_atomically(path, text_of(summary_));
  path_ = path;
  ended_ = false;
}

void RunSummaryFile::predict(const std::optional<double>& step_s) {
  const std::lock_guard lock(mutex_);
  summary_.predicted_step_s = step_s.value_or(kUnknown);
  if (!path_.empty() && !ended_) {
    write_atomically(path_, text_of(summary_));
  }
}

void RunSummaryFile::set_sent(SentMessages sent) {
  const std::lock_guard lock(mutex_);
  sent_ = std::move(sent);
}

void RunSummaryFile::set_cache(std::optional<PictureCacheUse> cache) {
  const std::lock_guard lock(mutex_);
  summary_.cache = std::move(cache);
}

bool RunSummaryFile::end(const std::string& state, const std::string& reason, int exit_code) {
  constexpr std::chrono::seconds kPatience{1};  // whoever calls it may be about to end the process
  const std::unique_lock lock(mutex_, kPatience);
  if (!lock.owns_lock() || path_.empty() || std::exchange(ended_, true)) {
    return false;
  }
  summary_.state = state;
  summary_.reason = reason;
  summary_.exit_code = exit_code;
  summary_.ended = utc_now();
  summary_.sent_bytes = sent_.bytes.empty() ? kUnknown : sum_of_bytes(sent_);
  summary_.sent_bytes_by_rank = sent_.bytes;
  summary_.sent_steps = sent_.steps;
  summary_.written_bytes = static_cast<double>(bytes_written() - written_before_);
  summary_.written_s = now_s() - begun_s_;
  try {
    write_atomically(path_, text_of(summary_));
  } catch (const InputError&) {
  }
  return true;
}

}  // namespace tessera::engine
