#include "engine/comm/mpi_session.h"

#include <array>
#include <cstdlib>
#include <optional>
#include <utility>

#include <mpi.h>

#include "engine/comm/communicator.h"
#include "engine/comm/mailbox.h"
#include "engine/comm/time_limit.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

// The value of a variable of mpiexec's; `alone` where the program was started without it.
int started(const char* name, int alone = 1) {
  const char* const text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no threads yet
  return text == nullptr ? alone : std::atoi(text);
}

}  // namespace

int rank_started() {
  return started("PMI_RANK", 0);
}

int ranks_started() {
  return started("PMI_SIZE");
}

bool spans_machines() {
  return ranks_started() > started("MPI_LOCALNRANKS");
}

MpiSession::MpiSession(int& argc, char**& argv, std::function<void()> on_late_finish)
    : on_late_finish_(std::move(on_late_finish)) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no threads yet
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) {
    throw InputError(
        "this program is built with MPICH and was started by Open MPI's mpirun, under which each "
        "rank would be alone; "
        "start it with mpiexec.mpich");
  }
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
}

MpiSession::~MpiSession() {
  // Another rank may have vanished; and MPI_Finalize has been seen to hang.
  std::optional<TimeLimit> limit;
  if (on_late_finish_) {
    limit.emplace(kLongestFinish_s, on_late_finish_);
  }
  Communicator::world().barrier();
  discard_letters();
  MPI_Finalize();
}

bool MpiSession::threads_may_call() {
  int provided = 0;
  MPI_Query_thread(&provided);
  return provided == MPI_THREAD_MULTIPLE;
}

void MpiSession::abort(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
}

std::string mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> bytes{};
  int length = 0;
  MPI_Get_library_version(bytes.data(), &length);
  const std::string text(bytes.data());
  // MPICH says it in lines of "KEY:", white space and the value.
  const auto value = [&](const std::string& key) {
    const std::size_t at = text.find(key);
    if (at == std::string::npos) {
      return std::string();
    }
    const std::size_t begin = text.find_first_not_of(" \t", at + key.size());
    return begin == std::string::npos ? std::string()
                                      : text.substr(begin, text.find('\n', begin) - begin);
  };
  const std::string version = value("MPICH Version:");
  return version.empty() ? text.substr(0, text.find('\n'))
                         : "MPICH " + version + " (" + value("MPICH Device:") + ")";
}

}  // namespace tessera::engine
