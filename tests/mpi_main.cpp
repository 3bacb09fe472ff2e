// The main of tests on several ranks. Ranks run the same test cases side by side; only failures are
// printed, each by the rank that has it, and one failure makes all ranks fail.
//
// What leaves a test case early on one rank (an exception, a REQUIRE) would leave the others
// waiting for it, so it ends all of them at once.

#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "engine/comm/communicator.h"
#include "engine/comm/mpi_session.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): doctest makes listeners
// itself
int own_rank = -1;

[[noreturn]] void end_all_ranks(const std::string& message) {
  std::fprintf(stderr, "[rank %d] %s\n", own_rank, message.c_str());
  engine::MpiSession::abort(EXIT_FAILURE);
  std::abort();
}

class EarlyEnd : public doctest::IReporter {
 public:
  explicit EarlyEnd(const doctest::ContextOptions& /*options*/) {}

  void test_case_start(const doctest::TestCaseData& test) override { test_case_ = test.m_name; }
  void test_case_exception(const doctest::TestCaseException& exception) override {
    end_all_ranks(test_case_ + ": exception: " + exception.error_string.c_str());
  }
  void log_assert(const doctest::AssertData& assertion) override {
    if (assertion.m_failed && (assertion.m_at & doctest::assertType::is_require) != 0) {
      end_all_ranks(test_case_ + ": REQUIRE( " + assertion.m_expr + " ) failed");
    }
  }

  void report_query(const doctest::QueryData& /*data*/) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& /*stats*/) override {}
  void test_case_reenter(const doctest::TestCaseData& /*test*/) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& /*stats*/) override {}
  void subcase_start(const doctest::SubcaseSignature& /*subcase*/) override {}
  void subcase_end() override {}
  void log_message(const doctest::MessageData& /*message*/) override {}
  void test_case_skipped(const doctest::TestCaseData& /*test*/) override {}

 private:
  std::string test_case_;
};

REGISTER_LISTENER("early end", 1, EarlyEnd);

int run_tests(int argc, char** argv) {
  const engine::Communicator world = engine::Communicator::world();
  own_rank = world.rank();
  std::ostringstream output;
  doctest::Context context(argc, argv);
  context.setOption("no-path-filenames", true);
  context.setCout(&output);
  const int failed = context.run();
  const std::string text = failed != 0 || world.rank() == 0 ? output.str() : std::string();
  const auto results = world.gather_all(engine::bytes_of(&failed, 1));
  const auto texts =
      world.gather_all(engine::bytes_of(text.data(), static_cast<std::ptrdiff_t>(text.size())));
  bool any_failed = false;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const std::string one(reinterpret_cast<const char*>(texts[rank].data()), texts[rank].size());
    if (world.rank() == 0 && !one.empty()) {
      std::printf("[rank %d of %d]\n%s", static_cast<int>(rank), world.size(), one.c_str());
    }
    any_failed = any_failed || results[rank][0] != std::byte{0};
  }
  return any_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const engine::MpiSession session(argc, argv);
    try {
      return run_tests(argc, argv);
    } catch (const std::exception& error) {
      end_all_ranks(error.what());
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
  }
}
