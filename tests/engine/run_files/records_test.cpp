// Files of the last release, read and written again: the same keys in the same order, with the same
// values.

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/files/json_text.h"
#include "engine/run_files/device_sample.h"
#include "engine/run_files/metrics.h"
#include "engine/run_files/names.h"
#include "engine/run_files/rank_memory.h"
#include "engine/run_files/run_event.h"
#include "engine/run_files/run_summary.h"
#include "engine/run_files/step_timing.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using Json = nlohmann::ordered_json;

const std::filesystem::path kFolder = TESSERA_SOURCE_DIR "/tests/golden/run-0.1.0";

template <class Rewrite>
void expect_same_lines(const char* name, Rewrite rewritten) {
  int lines = 0;
  engine::for_each_json_line(kFolder / name, [&](const std::string& text) {
    const Json line = Json::parse(text);
    CHECK(Json::parse(rewritten(line)) == line);
    ++lines;
  });
  CHECK(lines > 0);
}

TEST_CASE("lines are written as they were read") {
  expect_same_lines(engine::run_file::kMetrics, [](const Json& line) {
    const auto record = engine::metrics_record(line).value();
    const auto* const step = std::get_if<engine::StepRecord>(&record);
    return step != nullptr ? metrics_line(*step)
                           : metrics_line(std::get<engine::EvaluationRecord>(record));
  });
  expect_same_lines(engine::run_file::kDevices,
                    [](const Json& line) { return line_of(engine::device_line(line).value()); });
  expect_same_lines(engine::run_file::kEvents,
                    [](const Json& line) { return line_of(engine::run_event(line).value()); });
  expect_same_lines(engine::run_file::kTiming,
                    [](const Json& line) { return line_of(engine::step_timing(line).value()); });
}

TEST_CASE("whole files are written as they were read, to the byte") {
  const std::string run = tests::bytes_of(kFolder / engine::run_file::kRun);
  CHECK(text_of(engine::run_summary(run).value()) == run);
  const std::string memory = tests::bytes_of(kFolder / engine::run_file::kMemory);
  CHECK(text_of(engine::memory_of_ranks(memory).value()) == memory);
}

}  // namespace
