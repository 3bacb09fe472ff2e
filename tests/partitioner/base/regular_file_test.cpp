#include "partitioner/base/regular_file.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "partitioner/base/errors.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = std::filesystem::temp_directory_path() / "regular_file_XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

std::string refusal(const std::filesystem::path& path, Index most_bytes = 100) {
  try {
    (void)read_regular_file(path, "a list", most_bytes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a file is read whole, through a symbolic link as well, up to its limit") {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "one\ntwo";
  std::filesystem::create_symlink("file", folder / "link");
  CHECK(read_regular_file(folder / "file", "a list", 7) == "one\ntwo");
  CHECK(read_regular_file(folder / "link", "a list", 7) == "one\ntwo");
  CHECK(says(refusal(folder / "file", 6), "has 7 B, expected a list of at most 6 B"));
  std::ofstream(folder / "empty").flush();
  CHECK(read_regular_file(folder / "empty", "a list", 0).empty());
}

TEST_CASE("what is no regular file is refused at once, with its name and kind") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(says(refusal(folder / "pipe"), "pipe: cannot be read: this is a pipe, expected a list"));
  CHECK(irregular_kind(folder / "pipe") == "a pipe");

  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = folder / "socket";
  name.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  REQUIRE(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  CHECK(says(refusal(name), "this is a socket"));
  ::close(socket);

  CHECK(says(refusal("/dev/zero"), "/dev/zero: cannot be read: this is a device"));
  CHECK(says(refusal(folder / "."), "this is a folder"));
  std::filesystem::create_symlink("pipe", folder / "link");
  CHECK(says(refusal(folder / "link"), "this is a pipe"));
}

TEST_CASE("what cannot be opened is refused with the system's reason") {
  const TemporaryFolder folder;
  CHECK(says(refusal(folder / "missing"), "cannot be read (No such file or directory)"));
  std::filesystem::create_symlink("loop", folder / "loop");
  CHECK(says(refusal(folder / "loop"), "symbolic links"));
  CHECK(irregular_kind(folder / "missing").empty());
}

TEST_CASE("a file that the system makes as it is read counts as empty") {
  CHECK(read_regular_file("/proc/meminfo", "a list", 100).empty());
}
