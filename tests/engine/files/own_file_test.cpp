#include "engine/files/own_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

namespace tessera::engine {

using tests::bytes_of;
using tests::put_bytes;
using tests::TemporaryFolder;

TEST_CASE("what is added to a file does not reach another one by a link") {
  const TemporaryFolder folder;
  const TemporaryFolder elsewhere;
  put_bytes(elsewhere / "precious", "precious");
  std::filesystem::create_symlink(elsewhere / "precious", folder / "symbolic");
  std::filesystem::create_symlink(elsewhere / "new", folder / "dangling");
  std::filesystem::create_hard_link(elsewhere / "precious", folder / "hard");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  std::filesystem::create_directory(folder / "folder");
  for (const char* name : {"symbolic", "dangling", "hard", "pipe", "folder"}) {
    CAPTURE(name);
    CHECK_FALSE(open_without_links(folder / name, O_WRONLY | O_APPEND).is_open());
  }
  CHECK(bytes_of(elsewhere / "precious") == "precious");
  CHECK_FALSE(std::filesystem::exists(elsewhere / "new"));

  for (const char* part : {"one\n", "two\n"}) {
    const Descriptor file = open_without_links(folder / "plain", O_WRONLY | O_APPEND);
    REQUIRE(file.is_open());
    CHECK(::write(file.number(), part, 4) == 4);
  }
  CHECK(bytes_of(folder / "plain") == "one\ntwo\n");
}

}  // namespace tessera::engine
