#include "engine/cluster/protocol.h"

#include <nlohmann/json.hpp>

#include <doctest/doctest.h>

namespace tessera::engine {

namespace {

const DeviceFacts kFacts{.host_name = "pi2",
                         .boot = "b",
                         .version = "v",
                         .mpi = "m",
                         .architecture = "armv7l",
                         .word_bits = 32,
                         .has_launcher = true,
                         .memory_bytes = 5,
                         .free_memory_bytes = 4,
                         .swap_bytes = 3,
                         .swaps_to_card = true,
                         .processors = 4,
                         .load = 0.5,
                         .folder_exists = true,
                         .folder_writable = true,
                         .folder_free_bytes = 7,
                         .storage = Storage::Usb,
                         .shared_memory_free_bytes = 9,
                         .governor = "powersave",
                         .temperature_c = 61.5,
                         .throttled = 0x50005};

std::optional<DeviceFacts> facts_in(const nlohmann::json& object) {
  return answer_in<DeviceFacts>(object.dump());
}

// An answer is the same at the end that has asked.
template <class One>
One at_other_end(const One& one) {
  const std::string line = line_of(of_device::Answer(one));
  CHECK(line.find('\n') == std::string::npos);
  CHECK(is_answer(line));
  const auto read = answer_in<One>(line);
  REQUIRE(read);
  CHECK(line_of(of_device::Answer(*read)) == line);
  return *read;
}

}  // namespace

TEST_CASE("what a device is asked is the same at both ends") {
  const std::vector<to_device::Question> questions{to_device::Facts{"/home/pi"},
                                                   to_device::Resolve{{"pi1", "pi2"}},
                                                   to_device::Time{},
                                                   to_device::Listen{"10.0.0.1", "secret"},
                                                   to_device::Connect{"10.0.0.1", 80, "secret"}};
  CHECK(questions.size() == std::variant_size_v<to_device::Question>);
  for (std::size_t kind = 0; kind < questions.size(); ++kind) {
    CHECK(questions[kind].index() == kind);
    const auto read = question_in(line_of(questions[kind]));
    REQUIRE(read);
    CHECK(read->index() == kind);
    CHECK(line_of(*read) == line_of(questions[kind]));
  }
}

TEST_CASE("what a device answers is the same at both ends") {
  CHECK(at_other_end(kFacts) == kFacts);
  DeviceFacts few = kFacts;
  few.temperature_c.reset();
  few.throttled.reset();
  CHECK(at_other_end(few) == few);
  const auto resolved =
      at_other_end(of_device::Resolved{{{"pi1", {"10.0.0.1"}}, {"pi2", {}}},
                                       {{"10.0.0.1", "eth0", 1e9, false}, {"a", "b", {}, true}}});
  CHECK(resolved.names.at("pi1") == std::vector<std::string>{"10.0.0.1"});
  CHECK(resolved.interfaces[0].bits_per_s == 1e9);
  CHECK(resolved.interfaces[1].wireless);
  CHECK(at_other_end(of_device::Time{7.5}).time_s == 7.5);
  CHECK(at_other_end(of_device::Listening{80, "\xff"}).port == 80);
  CHECK(at_other_end(of_device::Tried{{1, 2, 3}, "no answer"}).rates.from_bytes_per_s == 3);
}

TEST_CASE("facts of another kind than expected are left out, the version is there all the same") {
  const DeviceFacts older{.host_name = "pi2", .version = "0.1.0 5e6f"};
  nlohmann::json message = older;
  message["word_bits"] = "many";
  message["has_launcher"] = 1;
  message["load"] = nullptr;
  message["mpi"] = nlohmann::json::array();
  message["storage"] = "cheese";
  message["free_memory_bytes"] = 1e300;
  message["throttled"] = 1e300;
  message["temperature_c"] = "hot";
  CHECK(facts_in(message) == older);
  CHECK(facts_in(nlohmann::json::object()) == DeviceFacts{});
}

TEST_CASE("a line that is damaged, or says something else, is neither a question nor an answer") {
  for (const std::string& line : {std::string(""),
                                  std::string("Welcome to pi2"),
                                  std::string("{"),
                                  std::string("[1]"),
                                  std::string(100'000, '[')}) {
    CAPTURE(line.substr(0, 60));
    CHECK(!is_answer(line));
    CHECK(!question_in(line));
    CHECK(!answer_in<of_device::Time>(line));
  }
  for (const char* line : {R"({"do":7})",
                           R"({"do":"reboot"})",
                           R"({"is":"time"})",
                           R"({"do":"connect","port":"ssh"})"}) {
    CAPTURE(line);
    CHECK(!question_in(line));
  }
  CHECK(!answer_in<of_device::Resolved>(R"({"names":{"pi1":[7]}})"));
  CHECK(!answer_in<of_device::Resolved>(R"({"interfaces":["eth0"]})"));
  CHECK(!answer_in<of_device::Time>(R"({"time_s":"noon"})"));
  CHECK(answer_in<of_device::Listening>(R"({"problem":"x","more":1})")->port == 0);
}

}  // namespace tessera::engine
