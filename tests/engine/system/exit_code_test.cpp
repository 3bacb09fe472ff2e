#include "engine/system/exit_code.h"

#include <csignal>
#include <new>
#include <stdexcept>
#include <system_error>

#include <doctest/doctest.h>

#include "engine/system/stop_request.h"
#include "partitioner/base/errors.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

TEST_CASE("an exception says with which exit code a process ends") {
  CHECK(engine::exit_code_of(engine::Stopped(SIGINT)) == 130);
  CHECK(engine::exit_code_of(engine::Stopped(SIGTERM)) == 143);
  CHECK(engine::exit_code_of(InputError("no such file")) == 2);
  CHECK(engine::exit_code_of(std::bad_alloc()) == 2);
  CHECK(engine::exit_code_of(std::system_error(std::make_error_code(std::errc::io_error))) == 2);
  CHECK(engine::exit_code_of(std::logic_error("a broken promise")) == 1);
}

}  // namespace
