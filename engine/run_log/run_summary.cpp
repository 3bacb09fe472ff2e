#include "engine/run_log/run_summary.h"

#include <chrono>
#include <ctime>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/files/atomic_file.h"
#include "engine/files/json_text.h"
#include "engine/files/written_bytes.h"
#include "engine/system/clock.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/json_value.h"
#include "partitioner/base/regular_file.h"

namespace tessera::engine {

using OrderedJson = nlohmann::ordered_json;

namespace {

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

// What an earlier start has left; nothing where that is not to be read.
OrderedJson earlier(const std::filesystem::path& path) {
  return OrderedJson::parse(read_json_text(path).value_or(""), nullptr, false);
}

OrderedJson cache_json(const RunSummary::Cache& cache) {
  if (cache.place.empty()) {
    return {};
  }
  return {{"place", cache.place},
          {"bytes", cache.bytes},
          {"kept", cache.kept},
          {"decoded", cache.decoded}};
}

}  // namespace

void RunSummaryFile::begin(const std::filesystem::path& path, RunSummary summary, bool goes_on) {
  const std::lock_guard lock(mutex_);
  summary_ = std::move(summary);
  started_ = utc_now();
  written_before_ = bytes_written();
  begun_s_ = now_s();
  if (goes_on) {
    const OrderedJson before = earlier(path);
    if (before.is_object() && before.contains("started") && before["started"].is_string()) {
      started_ = before["started"].get<std::string>();
    }
    if (before.is_object() && before.contains("first_step") &&
        before["first_step"].is_number_integer()) {
      summary_.first_step = before["first_step"].get<Index>();
    }
  }
  write_atomically(path, text("running", "", {}));
  path_ = path;
  ended_ = false;
}

void RunSummaryFile::predict(const std::optional<double>& step_s) {
  const std::lock_guard lock(mutex_);
  summary_.predicted_step_s = step_s;
  if (!path_.empty() && !ended_) {
    write_atomically(path_, text("running", "", {}));
  }
}

void RunSummaryFile::set_sent(SentMessages sent) {
  const std::lock_guard lock(mutex_);
  summary_.sent = std::move(sent);
}

void RunSummaryFile::set_cache(RunSummary::Cache cache) {
  const std::lock_guard lock(mutex_);
  summary_.cache = std::move(cache);
}

bool RunSummaryFile::end(const std::string& state, const std::string& reason, int exit_code) {
  constexpr std::chrono::seconds kPatience{1};  // whoever calls it may be about to end the process
  const std::unique_lock lock(mutex_, kPatience);
  if (!lock.owns_lock() || path_.empty() || std::exchange(ended_, true)) {
    return false;
  }
  try {
    write_atomically(path_, text(state, reason, exit_code));
  } catch (const InputError&) {
  }
  return true;
}

std::string RunSummaryFile::text(const std::string& state,
                                 const std::string& reason,
                                 std::optional<int> exit_code) const {
  OrderedJson ranks = OrderedJson::array();
  for (const RunSummary::Rank& rank : summary_.ranks) {
    ranks.push_back({{"rank", ranks.size()}, {"host", rank.host}, {"threads", rank.threads}});
  }
  const OrderedJson json{
      {"state", state},
      {"reason", reason},
      {"exit_code", or_null<OrderedJson>(exit_code)},
      {"started", started_},
      {"ended", state == "running" ? OrderedJson() : OrderedJson(utc_now())},
      {"version", summary_.version},
      {"model", summary_.model},
      {"data", summary_.data},
      {"command", summary_.command},
      {"first_step", summary_.first_step},
      {"last_step", summary_.last_step},
      {"epoch_steps", summary_.epoch_steps},
      {"batch", summary_.batch},
      {"seed", summary_.seed},
      {"replicas", summary_.replicas},
      {"sync", summary_.sync},
      {"gradient_precision", summary_.gradient_precision},
      {"exact", summary_.inexact.empty()},
      {"not_exact", summary_.inexact},
      {"training_pictures", summary_.training_pictures},
      {"testing_pictures", summary_.testing_pictures},
      {"class_names", summary_.class_names},
      {"ranks", ranks},
      {"predicted_step_s", or_null<OrderedJson>(summary_.predicted_step_s)},
      {"memory_limit_bytes", or_null<OrderedJson>(summary_.memory_limit_bytes)},
      {"sent_bytes",
       summary_.sent.bytes.empty() ? OrderedJson() : OrderedJson(sum_of_bytes(summary_.sent))},
      {"sent_bytes_by_rank", summary_.sent.bytes},
      {"sent_steps", summary_.sent.steps},
      {"written_bytes",
       state == "running" ? OrderedJson() : OrderedJson(bytes_written() - written_before_)},
      {"written_s", state == "running" ? OrderedJson() : OrderedJson(now_s() - begun_s_)},
      {"cache", cache_json(summary_.cache)}};
  // Names may be any bytes.
  return json.dump(1, ' ', true, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace tessera::engine
