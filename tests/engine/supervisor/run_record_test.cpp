#include "engine/supervisor/run_record.h"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "partitioner/base/errors.h"

namespace tessera::engine {

using tests::TemporaryFolder;

namespace {

SupervisorRecord record_of_two_devices() {
  SupervisorRecord record;
  record.run_number = "0123456789abcdef";
  record.words = {"train", "my model's.cfg", "--run", "a\nb"};
  record.request.model = "my model's.cfg";
  record.request.partition.gradient_precision = partitioner::Compression::Half;
  record.hosts = {{"pi1", 1}, {"fe80::1%eth0", 4}};
  record.folder = "/home/it's $(me)";
  record.run_folder = "/home/it's $(me)/a\nb";
  record.remote_shell = "ssh";
  record.generation = 3;
  record.supervisor = "fedcba9876543210";
  record.last_step = {1};
  record.witness = "192.168.1.1";
  record.interface = "eth0";
  record.typed = {"tessera", "run", "-n", "4", "--", "train", "my model's.cfg", "--run", "a\nb"};
  record.leader = "pi1";
  return record;
}

void put_record(const std::filesystem::path& file, const nlohmann::json& record) {
  tests::put_bytes(file, record.dump(1));
  std::filesystem::permissions(file, std::filesystem::perms(0644));
}

std::string refusal_of(const std::filesystem::path& file) {
  try {
    (void)read_supervisor_record(file);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the record of a run comes back with all names as they were") {
  const TemporaryFolder folder;
  const SupervisorRecord record = record_of_two_devices();
  put_record(folder / "record", record);
  CHECK(text_of(read_supervisor_record(folder / "record")) == text_of(record));
  std::filesystem::create_symlink(folder / "record", folder / "link");
  CHECK(refusal_of(folder / "link").empty());
  CHECK(refusal_of(folder / "none").find("there is no record") != std::string::npos);
}

TEST_CASE("of a record that does not say which devices had the last step all had it") {
  const TemporaryFolder folder;
  nlohmann::json record(record_of_two_devices());
  record.erase("last_step");
  put_record(folder / "record", record);
  CHECK(read_supervisor_record(folder / "record").last_step == std::vector<int>{0, 1});
  record["last_step"] = {2};
  put_record(folder / "record", record);
  CHECK(refusal_of(folder / "record").find("is damaged") != std::string::npos);
}

TEST_CASE("a record without the number of its supervisor is read, one with another text is not") {
  const TemporaryFolder folder;
  nlohmann::json record(record_of_two_devices());
  record["supervisor"] = "../../etc";
  put_record(folder / "record", record);
  CHECK(refusal_of(folder / "record").find("is damaged") != std::string::npos);
  for (const char* later : {"supervisor", "typed", "leader"}) {
    record.erase(later);
  }
  put_record(folder / "record", record);
  CHECK(supervisor_of(folder / "record") == engine::SupervisorId{3, ""});
}

TEST_CASE(
    "a record of before requests travelled has none, and one whose request is damaged is too") {
  const TemporaryFolder folder;
  nlohmann::json record(record_of_two_devices());
  record["request"]["partition"]["gradient_precision"] = "most";
  put_record(folder / "record", record);
  CHECK(refusal_of(folder / "record").find("is damaged") != std::string::npos);
  record.erase("request");
  put_record(folder / "record", record);
  CHECK(read_supervisor_record(folder / "record").request == TrainingRequest());
}

TEST_CASE("numbers that no run has are no record's") {
  const TemporaryFolder folder;
  const nlohmann::json record(record_of_two_devices());
  for (const char* number :
       {"1000000000000", "9223372036854775807", "18446744073709551615", "-1", "1e300", "\"1\""}) {
    CAPTURE(number);
    nlohmann::json changed = record;
    changed["generation"] = nlohmann::json::parse(number);
    put_record(folder / "record", changed);
    CHECK(refusal_of(folder / "record").find("is damaged") != std::string::npos);
    changed = record;
    changed["hosts"][1]["ranks"] = nlohmann::json::parse(number);
    put_record(folder / "record", changed);
    CHECK(refusal_of(folder / "record").find("is damaged") != std::string::npos);
  }
}

TEST_CASE("a record whose hosts are options or commands is refused") {
  const TemporaryFolder folder;
  for (const char* name :
       {"-oProxyCommand=reboot", "pi1;reboot", "$(reboot)", "pi 1", "pi1\n", ""}) {
    CAPTURE(name);
    SupervisorRecord record = record_of_two_devices();
    record.hosts[1].name = name;
    put_record(folder / "record", record);
    CHECK(refusal_of(folder / "record").find("is damaged") != std::string::npos);
  }
}

TEST_CASE("a record that others have written or may write names no commands to run") {
  const TemporaryFolder folder;
  put_record(folder / "record", nlohmann::json(record_of_two_devices()));
  std::filesystem::permissions(folder / "record", std::filesystem::perms(0646));
  CHECK(refusal_of(folder / "record").find("every user may change it") != std::string::npos);
  CHECK(supervisor_of(folder / "record") == engine::SupervisorId{});
  std::filesystem::permissions(folder / "record", std::filesystem::perms(0644));
  CHECK(supervisor_of(folder / "record") == engine::SupervisorId{3, "fedcba9876543210"});
  constexpr uid_t kSomebody = 12345;
  if (::geteuid() == 0) {  // else nothing can be given away
    REQUIRE(::chown((folder / "record").c_str(), kSomebody, kSomebody) == 0);
    CHECK(refusal_of(folder / "record").find("belongs to another user") != std::string::npos);
    std::filesystem::create_symlink(folder / "record", folder / "link");
    CHECK(refusal_of(folder / "link").find("belongs to another user") != std::string::npos);
  }
}

}  // namespace tessera::engine
