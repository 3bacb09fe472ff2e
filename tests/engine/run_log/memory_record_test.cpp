#include "engine/run_log/memory_record.h"

#include <nlohmann/json.hpp>
#include <string>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using partitioner::MemoryUse;

MemoryUse planned_use() {
  MemoryUse use;
  use.weights = 1 << 20;
  use.activations = 3 << 20;
  return use;
}

MemoryUse measured_use() {
  MemoryUse use = planned_use();
  use.activations = 2 << 20;
  use.pictures = 5 << 20;
  return use;
}

TEST_CASE("memory.json has what was planned beside what was measured, each with its total") {
  const Communicator alone = Communicator::self();
  const auto json = nlohmann::json::parse(
      engine::text_of(engine::memory_of_ranks({planned_use()}, {measured_use()}, alone)));
  CHECK(json["unit"] == "bytes");
  REQUIRE(json["ranks"].size() == 1);
  const auto& rank = json["ranks"][0];
  CHECK(rank["rank"] == 0);
  CHECK(rank["planned"]["activations"] == 3 << 20);
  CHECK(rank["planned"]["total"] == 4 << 20);
  CHECK(rank["measured"]["activations"] == 2 << 20);
  CHECK(rank["measured"]["total"] == 8 << 20);
  CHECK(rank["measured"]["peak_resident"] > 0);
  CHECK(!rank["planned"].contains("peak_resident"));
}

TEST_CASE("memory that ranks share is resident by shares") {
  const Communicator alone = Communicator::self();
  const auto peak = [&](Index for_others) {
    const auto ranks =
        engine::memory_of_ranks({planned_use()}, {measured_use(), for_others}, alone);
    return static_cast<Index>(ranks.at(0).peak_resident_bytes);
  };
  const Index all = peak(0);
  CHECK(all > 2 << 20);
  CHECK(peak(1 << 20) >= all - (1 << 20));  // the peak may have grown meanwhile
  CHECK(peak(1 << 20) < peak(0));
  CHECK(peak(Index{1} << 50U) == 0);
}

TEST_CASE("the table of memory has a row for what was planned and one for what was measured") {
  const Communicator alone = Communicator::self();
  const std::string table =
      engine::memory_table(engine::memory_of_ranks({planned_use()}, {measured_use()}, alone));
  const std::size_t planned = table.find("planned");
  const std::size_t measured = table.find("measured");
  REQUIRE(planned != std::string::npos);
  REQUIRE(measured != std::string::npos);
  CHECK(table.find("4.0", planned) < measured);
  CHECK(table.find("8.0", measured) != std::string::npos);
}

TEST_CASE("an execution's memory is reported by kind, the optimizer's state with it") {
  engine::ExecutionMemory execution;
  execution.weights = 1;
  execution.gradients = 2;
  execution.activations = 3;
  execution.workspace = 4;
  execution.messages = 5;
  const MemoryUse use = engine::measured_memory(execution, 6);
  CHECK(use.weights == 1);
  CHECK(use.gradients == 2);
  CHECK(use.activations == 3);
  CHECK(use.workspace == 4);
  CHECK(use.messages == 5);
  CHECK(use.optimizer == 6);
  CHECK(use.total() == 21);
}

}  // namespace
