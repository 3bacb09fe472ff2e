#include "engine/supervisor/protocol.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace tessera::engine {

namespace {

SupervisorRecord record_of_a_run() {
  SupervisorRecord record;
  record.run_number = "0123456789abcdef";
  record.words = {"train", "m.cfg"};
  record.request.model = "m.cfg";
  record.typed = {"tessera", "run", "-n", "2", "--", "train", "m.cfg", "\"quoted\"\n"};
  record.hosts = {{"pi1", 2}, {"pi2", 1}};
  record.folder = "/home/pi";
  record.run_folder = "/home/pi/runs/a";
  record.generation = 3;
  record.supervisor = "fedcba9876543210";
  record.last_step = {1};
  return record;
}

// Sent by one end and read by the other, each message of a kind is what it was.
template <class Message>
void expect_same_at_both_ends(const std::vector<Message>& messages) {
  CHECK(messages.size() == std::variant_size_v<Message>);
  for (std::size_t kind = 0; kind < messages.size(); ++kind) {
    CAPTURE(kind);
    CHECK(messages[kind].index() == kind);
    const std::string line = line_of(messages[kind]);
    CHECK(line.find('\n') == std::string::npos);
    const auto read = message_in<Message>(line);
    REQUIRE(read);
    CHECK(read->index() == kind);
    CHECK(line_of(*read) == line);
  }
}

}  // namespace

TEST_CASE("what ranks and agents tell each other is the same at both ends") {
  expect_same_at_both_ends<of_rank::Message>({of_rank::Beat{},
                                              of_rank::Works{},
                                              of_rank::Stuck{},
                                              of_rank::Phase{RankPhase::Saving, 7, 1 << 20},
                                              of_rank::Step{41, 60},
                                              of_rank::Saved{},
                                              of_rank::Silent{{0, 3}}});
  expect_same_at_both_ends<to_rank::Message>({to_rank::Pause{}});
}

TEST_CASE("what supervisor and agents tell each other is the same at both ends") {
  expect_same_at_both_ends<to_agent::Message>(
      {to_agent::Beat{},
       to_agent::Hello{.run = "0123456789abcdef",
                       .host = "pi2",
                       .ranks = 1,
                       .limit_ms = 1500,
                       .folder = "/home/pi",
                       .environment = {{"OMP_NUM_THREADS", "4"}, {"LANG", "C"}},
                       .place = 1,
                       .takes_over = true,
                       .leads = true,
                       .record = record_of_a_run()},
       to_agent::Start{.world = 2,
                       .ranks = {2, 3},
                       .size = 4,
                       .again = true,
                       .forget = true,
                       .request = {.model = "m.cfg", .steps = 60},
                       .typed = {"tessera", "run"},
                       .words = {"/usr/bin/tessera", "train"}},
       to_agent::Kill{},
       to_agent::Wait{},
       to_agent::Record{record_of_a_run()},
       to_agent::Signal{15},
       PmiLine{2, 3, "cmd=get_maxes \"x\""},
       to_agent::Pause{2},
       to_agent::Look{"standby-0123456789abcdef"},
       to_agent::FilePart{"metrics.jsonl", 4, true, true, {'a', '\0', 255, '\n'}},
       to_agent::End{true}});
  expect_same_at_both_ends<to_supervisor::Message>(
      {to_supervisor::Beat{},
       to_supervisor::Hello{"7", "pi2", false},
       to_supervisor::Heard{},
       to_supervisor::Superseded{},
       to_supervisor::Finished{},
       to_supervisor::Stopped{},
       to_supervisor::Problem{"/home/pi: cannot be written"},
       to_supervisor::Ending{1},
       to_supervisor::Look{"standby-0123456789abcdef", true},
       PmiLine{2, 3, "cmd=barrier_in"},
       to_supervisor::Status{2, 3, of_rank::Step{41, 60}},
       to_supervisor::Late{2, 3, 3100},
       to_supervisor::Exit{2, 3, 0, 9, "little room in /dev/shm", true}});
}

TEST_CASE("a record travels with all that it says") {
  const auto sent = line_of(to_agent::Record{record_of_a_run()});
  const auto read = message_in<to_agent::Message>(sent);
  REQUIRE(read);
  CHECK(text_of(std::get<to_agent::Record>(*read).record) == text_of(record_of_a_run()));
}

TEST_CASE("what a message lacks has its default, and what is of another type is no message") {
  const auto late = message_in<to_supervisor::Message>(R"({"is":"late","world":2,"more":[1]})");
  REQUIRE(late);
  CHECK(std::get<to_supervisor::Late>(*late).world == 2);
  CHECK(std::get<to_supervisor::Late>(*late).silent_ms == 0);
  for (const std::string& line :
       {std::string("{"),
        std::string("[1]"),
        std::string("7"),
        std::string(R"({"is":7})"),
        std::string(R"({"is":"unheard of"})"),
        std::string(R"({"do":"late"})"),
        std::string(R"({"is":"late","world":"two"})"),
        std::string(R"({"is":"status","world":1,"rank":0,"status":{"is":"unheard of"}})"),
        std::string(100'000, '[')}) {
    CAPTURE(line.substr(0, 60));
    CHECK(!message_in<to_supervisor::Message>(line));
  }
  to_agent::Hello greeting;
  greeting.record = record_of_a_run();
  nlohmann::json hello = nlohmann::json::parse(line_of(greeting));
  CHECK(message_in<to_agent::Message>(hello.dump()));
  hello["record"]["hosts"][0]["name"] = "-oProxyCommand=reboot";
  CHECK(!message_in<to_agent::Message>(hello.dump()));
  CHECK(!message_in<to_agent::Message>(R"({"do":"mirror","file":"a","bytes":"%%%%"})"));
}

TEST_CASE("an agent of an older program says which it is, whatever else it says otherwise") {
  const auto read = message_in<to_supervisor::Message>(
      R"({"folder_there":true,"host":"pi2","is":"hello","version":"0.1.0 5e6f","since":"older"})");
  REQUIRE(read);
  CHECK(std::get<to_supervisor::Hello>(*read).version == "0.1.0 5e6f");
}

TEST_CASE("variables that agents set themselves do not travel with those of the supervisor") {
  for (const char* name : {rank_variable::kAgent,
                           rank_variable::kStateFolder,
                           rank_variable::kFaults,
                           rank_variable::kCommand,
                           rank_variable::kStartedAgain,
                           "HOME",
                           "PMI_FD"}) {
    CAPTURE(name);
    CHECK(!travels(name));
  }
  for (const char* name : {"OMP_NUM_THREADS", "UCX_TLS", "TESSERA_VECTORS", "LC_ALL", "LANG"}) {
    CAPTURE(name);
    CHECK(travels(name));
  }
}

TEST_CASE("a command comes back from its text, word by word") {
  const std::vector<std::string> words{"tessera", "run", "", "a b", "\"\n'"};
  CHECK(words_in(text_of_words(words)) == words);
  for (const char* text : {"", "{}", "[1]", "[\"a\""}) {
    CHECK(words_in(text).empty());
  }
}

}  // namespace tessera::engine
