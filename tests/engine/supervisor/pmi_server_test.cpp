#include "engine/supervisor/pmi_server.h"

#include <doctest/doctest.h>

namespace tessera::engine {

namespace {

std::string only_answer(PmiServer& server, int rank, const std::string& line) {
  const auto answers = server.take(rank, line);
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].rank == rank);
  return answers[0].line;
}

}  // namespace

TEST_CASE("ranks of a world find what others have put, after a barrier of all") {
  PmiServer server(3, process_mapping({2, 1}));
  CHECK(only_answer(server, 0, "cmd=init pmi_version=1 pmi_subversion=1") ==
        "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
  CHECK(only_answer(server, 1, "cmd=get kvsname=tessera key=PMI_process_mapping") ==
        "cmd=get_result rc=0 msg=success value=(vector,(0,1,2),(1,1,1))");
  CHECK(only_answer(server, 2, "cmd=get_universe_size") == "cmd=universe_size size=3 rc=0");
  CHECK(only_answer(server, 2, "cmd=put kvsname=tessera key=a value=x y=z") ==
        "cmd=put_result rc=0 msg=success");
  CHECK(server.take(0, "cmd=barrier_in").empty());
  CHECK(server.take(0, "cmd=barrier_in").empty());  // the same rank again is no other one
  CHECK(server.take(2, "cmd=barrier_in").empty());
  const auto all = server.take(1, "cmd=barrier_in");
  REQUIRE(all.size() == 3);
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(all[static_cast<std::size_t>(rank)].rank == rank);
    CHECK(all[static_cast<std::size_t>(rank)].line == "cmd=barrier_out");
  }
  CHECK(server.take(0, "cmd=barrier_in").empty());  // the next one begins anew
  CHECK(only_answer(server, 0, "cmd=get kvsname=tessera key=a") ==
        "cmd=get_result rc=0 msg=success value=x y=z");
  CHECK(only_answer(server, 0, "cmd=get kvsname=tessera key=b").find("rc=-1") != std::string::npos);
  CHECK(only_answer(server, 1, "cmd=finalize") == "cmd=finalize_ack");
  CHECK(server.take(1, "cmd=abort exitcode=75").empty());
  CHECK(abort_code_in("cmd=abort exitcode=75") == 75);
  CHECK(abort_code_in("cmd=abort exitcode=739889039") == 15);  // of MPI itself
  CHECK_FALSE(abort_code_in("cmd=finalize"));
}

TEST_CASE("what is not of the protocol is refused and changes nothing") {
  PmiServer server(2, process_mapping({2}));
  CHECK(only_answer(server, 0, "cmd=init pmi_version=2 pmi_subversion=0").find("rc=-1") !=
        std::string::npos);
  for (const char* line : {"", "garbage", "cmd=", "cmd=reboot", "=", "cmd"}) {
    CAPTURE(line);
    CHECK(only_answer(server, 0, line).find("rc=-1") != std::string::npos);
  }
  CHECK(server.take(2, "cmd=barrier_in").empty());
  CHECK(server.take(-1, "cmd=barrier_in").empty());
  const std::string long_value(1025, 'x');
  CHECK(only_answer(server, 0, "cmd=put kvsname=k key=a value=" + long_value).find("rc=-1") !=
        std::string::npos);
  CHECK(only_answer(server, 0, "cmd=get kvsname=k key=a").find("rc=-1") != std::string::npos);
}

TEST_CASE("machines with equally many ranks in a row are one entry of the mapping") {
  CHECK(process_mapping({1, 1, 1}) == "(vector,(0,3,1))");
  CHECK(process_mapping({4, 2, 2, 1}) == "(vector,(0,1,4),(1,2,2),(3,1,1))");
}

}  // namespace tessera::engine
