#include "engine/files/atomic_file.h"

#include <csignal>
#include <filesystem>
#include <string>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/files/safetensors.h"
#include "partitioner/base/errors.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::AtomicFile;
using tests::bytes_of;
using tests::has;
using tests::input_error_of;
using tests::put_bytes;
using tests::TemporaryFolder;

// While it lives, files of this process end at `bytes`: writes beyond fail as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    rlimit limit = old_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*old_handler_)(int);
  rlimit old_ = {};
};

TEST_CASE("an atomic file appears at commit, whole, and leaves nothing beside it") {
  const TemporaryFolder folder;
  const auto path = folder / "model";
  put_bytes(path, "old");
  AtomicFile file(path);
  file.write("ne");
  file.write("w");
  CHECK(bytes_of(path) == "old");
  file.commit();
  CHECK(bytes_of(path) == "new");
  CHECK(folder.entries() == 1);
}

TEST_CASE("an atomic file that is not committed changes nothing") {
  const TemporaryFolder folder;
  const auto path = folder / "model";
  put_bytes(path, "old");
  {
    AtomicFile file(path);
    file.write("new");
  }
  CHECK(bytes_of(path) == "old");
  CHECK(folder.entries() == 1);
}

TEST_CASE("what a killed run left beside the target is overwritten") {
  const TemporaryFolder folder;
  const auto path = folder / "model";
  put_bytes(folder / "model.partial", "a longer rest of something");
  engine::write_atomically(path, "new");
  CHECK(bytes_of(path) == "new");
  CHECK(folder.entries() == 1);
}

TEST_CASE("what a killed run left beside the target is finished where it is whole") {
  const TemporaryFolder folder;
  const auto path = folder / "model";
  const auto finish = [&] {
    AtomicFile::finish_left(path, folder / "previous", [](const std::filesystem::path& left) {
      return bytes_of(left) == "whole";
    });
  };
  put_bytes(path, "old");
  put_bytes(folder / "model.partial", "who");
  finish();
  CHECK(bytes_of(path) == "old");
  finish();  // there is nothing
  CHECK(bytes_of(path) == "old");
  CHECK(folder.entries() == 1);
  put_bytes(folder / "model.partial", "whole");
  finish();
  CHECK(bytes_of(path) == "whole");
  CHECK(bytes_of(folder / "previous") == "old");
  CHECK(folder.entries() == 2);
}

TEST_CASE("two writers of one target are refused, one after the other is not") {
  const TemporaryFolder folder;
  const auto path = folder / "model";
  AtomicFile first(path);
  CHECK(has(input_error_of([&] { AtomicFile second(path); }), path.string()));
  first.write("first");
  first.commit();
  engine::write_atomically(path, "second");
  CHECK(bytes_of(path) == "second");
}

TEST_CASE("where links are followed, one keeps pointing at the file that is replaced") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "disk");
  put_bytes(folder / "disk" / "model", "old");
  std::filesystem::create_symlink(folder / "disk" / "model", folder / "link");
  engine::write_atomically(folder / "link", "new", engine::Links::Follow);
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(bytes_of(folder / "disk" / "model") == "new");
}

TEST_CASE("nothing is written through a link, at the target or beside it") {
  const TemporaryFolder folder;
  put_bytes(folder / "other", "of somebody");
  for (const char* name : {"model", "model.partial"}) {
    for (const bool symbolic : {true, false}) {
      CAPTURE(name);
      CAPTURE(symbolic);
      const auto link = folder / name;
      symbolic ? std::filesystem::create_symlink(folder / "other", link)
               : std::filesystem::create_hard_link(folder / "other", link);
      engine::write_atomically(folder / "model", "new");
      CHECK(bytes_of(folder / "other") == "of somebody");
      CHECK(bytes_of(folder / "model") == "new");
      CHECK(!std::filesystem::is_symlink(folder / "model"));
      CHECK(folder.entries() == 2);
      std::filesystem::remove(folder / "model");
    }
  }
}

TEST_CASE("a link to nothing, to a folder or to a device is replaced like any other") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "disk");
  for (const std::filesystem::path& end :
       {folder / "missing", folder / "disk", std::filesystem::path("/dev/null")}) {
    CAPTURE(end);
    std::filesystem::create_symlink(end, folder / "model");
    engine::write_atomically(folder / "model", "new");
    CHECK(bytes_of(folder / "model") == "new");
    std::filesystem::remove(folder / "model");
  }
  CHECK(folder.entries() == 1);
}

TEST_CASE("folders, devices and missing folders are refused as targets, by name") {
  const TemporaryFolder folder;
  for (const std::filesystem::path& path : {folder.path(),
                                            folder.path() / "",
                                            folder / "missing" / "model",
                                            std::filesystem::path("/dev/null")}) {
    CAPTURE(path);
    CHECK(has(input_error_of([&] { AtomicFile file(path); }), path.string() + ": "));
  }
  CHECK(folder.entries() == 0);
  CHECK(std::filesystem::is_character_file("/dev/null"));
}

TEST_CASE("a write beyond what the disk takes keeps the old file and leaves no other") {
  const TemporaryFolder folder;
  const auto path = folder / "checkpoint";
  put_bytes(path, "old");
  const std::string large(1 << 16, 'x');
  const FileSizeLimit limit(1 << 15);
  const std::string message = input_error_of([&] {
    AtomicFile file(path);
    file.write(large);
    file.commit();
  });
  CHECK(has(message, path.string() + ": cannot be written"));
  CHECK(bytes_of(path) == "old");
  CHECK(folder.entries() == 1);
}

TEST_CASE("a checkpoint that outgrows the disk keeps the last one readable") {
  const TemporaryFolder folder;
  const auto path = folder / "checkpoint.safetensors";
  const auto save = [&](Index count) {
    engine::SafetensorsWriter writer(
        path, {{.name = "w", .shape = {count}, .type = engine::ElementType::F64}}, {});
    for (Index i = 0; i < count; ++i) {
      const double value = 0.5 * static_cast<double>(i);
      writer.write<double>({&value, 1});
    }
    writer.commit();
  };
  save(10);
  {
    const FileSizeLimit limit(1 << 12);
    CHECK(has(input_error_of([&] { save(1000); }), path.string()));
  }
  CHECK(engine::SafetensorsReader(path).read_all<double>("w").at(9) == 4.5);
  CHECK(folder.entries() == 1);
}

TEST_CASE("a really full file system keeps the old file and says that space is missing") {
  const TemporaryFolder folder;
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
    MESSAGE("skipped: mounting a small file system needs root");
    return;
  }
  const auto path = folder / "checkpoint";
  put_bytes(path, "old");
  const std::string message = input_error_of([&] {
    AtomicFile file(path);
    file.write(std::string(1 << 17, 'x'));
    file.commit();
  });
  CHECK(has(message, path.string()));
  CHECK(has(message, "No space left on device; free some space"));
  CHECK(bytes_of(path) == "old");
  CHECK(folder.entries() == 1);
  ::umount(folder.path().c_str());
}

TEST_CASE("a generation is kept under its name, and nothing else stays") {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& text) {
    AtomicFile file(folder / "model");
    file.keep_old_as(folder / "previous");
    file.write(text);
    file.commit();
  };
  write("one");
  CHECK(folder.entries() == 1);
  write("two");
  CHECK(bytes_of(folder / "model") == "two");
  CHECK(bytes_of(folder / "previous") == "one");
  write("three");
  CHECK(bytes_of(folder / "model") == "three");
  CHECK(bytes_of(folder / "previous") == "two");
  CHECK(folder.entries() == 2);
}

TEST_CASE(
    "a power cut between the two names of a file leaves nothing that the next writer trips over") {
  const TemporaryFolder folder;
  put_bytes(folder / "model", "old");
  // As it is when the old file has its second name, and the new one does not have its first.
  std::filesystem::create_hard_link(folder / "model", folder / "previous");
  put_bytes(folder / "model.partial", "half of a n");
  AtomicFile file(folder / "model");
  file.keep_old_as(folder / "previous");
  file.write("new");
  file.commit();
  CHECK(bytes_of(folder / "model") == "new");
  CHECK(bytes_of(folder / "previous") == "old");
  CHECK(folder.entries() == 2);
}

TEST_CASE("a writer that fails keeps both generations, and a link is none") {
  const TemporaryFolder folder;
  put_bytes(folder / "model", "newer");
  put_bytes(folder / "previous", "older");
  {
    const FileSizeLimit limit(1 << 10);
    CHECK(has(input_error_of([&] {
                AtomicFile file(folder / "model");
                file.keep_old_as(folder / "previous");
                file.write(std::string(1 << 12, 'x'));
              }),
              "the old file is kept"));
  }
  CHECK(bytes_of(folder / "model") == "newer");
  CHECK(bytes_of(folder / "previous") == "older");
  std::filesystem::remove(folder / "model");
  std::filesystem::create_symlink("/etc/hostname", folder / "model");
  AtomicFile file(folder / "model");
  file.keep_old_as(folder / "previous");
  file.write("new");
  file.commit();
  CHECK(bytes_of(folder / "model") == "new");
  CHECK(bytes_of(folder / "previous") == "older");
}

TEST_CASE("on a disk that has room for two files, the older generation makes way") {
  const TemporaryFolder folder;
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
    MESSAGE("skipped: mounting a small file system needs root");
    return;
  }
  const auto write = [&](char letter) {
    AtomicFile file(folder / "model");
    file.keep_old_as(folder / "previous");
    for (int page = 0; page < 6; ++page) {
      file.write(std::string(1 << 12, letter));
    }
    file.commit();
  };
  for (const char letter : {'a', 'b', 'c', 'd'}) {
    CHECK(input_error_of([&] { write(letter); }).empty());
    CHECK(bytes_of(folder / "model") == std::string(6 << 12, letter));
  }
  CHECK(bytes_of(folder / "previous") == std::string(6 << 12, 'c'));
  CHECK(folder.entries() == 2);
  ::umount(folder.path().c_str());
}

}  // namespace
