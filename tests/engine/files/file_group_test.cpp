#include "engine/files/file_group.h"

#include <string>

#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

std::span<const std::byte> bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

TEST_CASE("files of a group appear with commit, in folders that are made for them") {
  const tests::TemporaryFolder folder;
  engine::FileGroup group;
  group.add(folder / "a" / "b" / "one", bytes("first"));
  group.add(folder / "two", bytes("second"));
  CHECK(!std::filesystem::exists(folder / "two"));
  group.commit();
  CHECK(tests::bytes_of(folder / "a" / "b" / "one") == "first");
  CHECK(tests::bytes_of(folder / "two") == "second");
  group.add(folder / "two", bytes("third"));
  group.commit();
  CHECK(tests::bytes_of(folder / "two") == "third");
  CHECK(folder.entries() == 2);
}

TEST_CASE("what is not committed leaves nothing, and the old file as it was") {
  const tests::TemporaryFolder folder;
  tests::put_bytes(folder / "kept", "old");
  {
    engine::FileGroup group;
    group.add(folder / "kept", bytes("new"));
    group.add(folder / "other", bytes("new"));
  }
  CHECK(tests::bytes_of(folder / "kept") == "old");
  CHECK(folder.entries() == 1);
}

TEST_CASE("what a writer that was killed has left is replaced") {
  const tests::TemporaryFolder folder;
  tests::put_bytes(folder / "a.partial", "longer than what comes now");
  engine::FileGroup group;
  group.add(folder / "a", bytes("new"));
  group.commit();
  CHECK(tests::bytes_of(folder / "a") == "new");
  CHECK(folder.entries() == 1);
}

TEST_CASE("a group writes through no link, and below its root into no linked folder") {
  const tests::TemporaryFolder folder;
  tests::put_bytes(folder / "other", "of somebody");
  std::filesystem::create_directory(folder / "disk");
  std::filesystem::create_hard_link(folder / "other", folder / "a.partial");
  std::filesystem::create_symlink(folder / "other", folder / "b.partial");
  std::filesystem::create_symlink(folder / "other", folder / "b");
  engine::FileGroup group(folder.path());
  group.add(folder / "a", bytes("new"));
  group.add(folder / "b", bytes("new"));
  group.commit();
  CHECK(tests::bytes_of(folder / "other") == "of somebody");
  CHECK(tests::bytes_of(folder / "b") == "new");
  std::filesystem::create_directory(folder / "c");
  std::filesystem::create_symlink(folder / "disk", folder / "c" / "link");
  CHECK(tests::has(
      tests::input_error_of([&] { group.add(folder / "c" / "link" / "d" / "e", bytes("x")); }),
      (folder / "c" / "link").string() + ": is a symbolic link"));
  CHECK(std::filesystem::is_empty(folder / "disk"));
  std::filesystem::create_symlink(folder / "c", folder / "linked");
  engine::FileGroup other(folder / "linked");
  CHECK(tests::has(tests::input_error_of([&] { other.add(folder / "linked" / "e", bytes("x")); }),
                   "is a symbolic link"));
}

TEST_CASE("a group holds more files than a process may have open") {
  const tests::TemporaryFolder folder;
  engine::FileGroup group;
  for (int i = 0; i < 1500; ++i) {
    group.add(folder / std::to_string(i), bytes(std::to_string(i)));
  }
  group.commit();
  CHECK(folder.entries() == 1500);
  CHECK(tests::bytes_of(folder / "1499") == "1499");
}

TEST_CASE("a file that cannot be written is named") {
  const tests::TemporaryFolder folder;
  tests::put_bytes(folder / "file", "");
  engine::FileGroup group;
  const std::string error =
      tests::input_error_of([&] { group.add(folder / "file" / "below", bytes("new")); });
  CHECK(tests::has(error, (folder / "file").string()));
}
