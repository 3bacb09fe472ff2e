#include "engine/supervisor/folder_mirror.h"

#include <fstream>
#include <sstream>
#include <sys/stat.h>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "partitioner/base/errors.h"

namespace tessera::engine {

using tests::TemporaryFolder;

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

int copy_all(MirrorSource& source, MirrorCopy& copy) {
  int parts = 0;
  while (const auto part = source.next()) {
    // As it comes, by its line.
    copy.take(std::get<to_agent::FilePart>(*message_in<to_agent::Message>(line_of(*part))));
    ++parts;
    REQUIRE(parts < 1000);
  }
  return parts;
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

TEST_CASE("a copy of a run folder follows files that grow, change and are replaced") {
  const TemporaryFolder from;
  const TemporaryFolder to;
  const auto target = to.path() / "runs" / "a";
  MirrorSource source(from.path());
  MirrorCopy copy(target);
  std::string weights(300'000, 'w');
  weights[5] = '\0';
  write(from.path() / "metrics.jsonl", "one\n");
  write(from.path() / "checkpoint.safetensors", weights);
  write(from.path() / "checkpoint.safetensors.partial", "half");
  write(from.path() / "run.lock", "");
  std::filesystem::create_directory(from.path() / "pictures");
  std::filesystem::create_symlink("/etc/passwd", from.path() / "link.jsonl");
  CHECK(copy_all(source, copy) == 4);  // three parts of the weights
  CHECK(text_of(target / "metrics.jsonl") == "one\n");
  CHECK(text_of(target / "checkpoint.safetensors") == weights);
  CHECK_FALSE(std::filesystem::exists(target / "checkpoint.safetensors.partial"));
  CHECK_FALSE(std::filesystem::exists(target / "link.jsonl"));
  CHECK(copy_all(source, copy) == 0);

  std::ofstream(from.path() / "metrics.jsonl", std::ios::app) << "two\n";
  const auto part = source.next();
  REQUIRE(part);
  CHECK(part->appends);
  CHECK(part->offset == 4);
  copy.take(*part);
  CHECK(text_of(target / "metrics.jsonl") == "one\ntwo\n");

  write(from.path() / "metrics.jsonl", "on\n");  // cut by a run that goes on
  write(from.path() / "new", "new weights");
  std::filesystem::rename(from.path() / "new", from.path() / "checkpoint.safetensors");
  copy_all(source, copy);
  CHECK(text_of(target / "metrics.jsonl") == "on\n");
  CHECK(text_of(target / "checkpoint.safetensors") == "new weights");

  // Cut and longer than before, between two looks.
  write(from.path() / "metrics.jsonl", "of another start\n");
  copy_all(source, copy);
  CHECK(text_of(target / "metrics.jsonl") == "of another start\n");

  source.start_anew();
  CHECK(copy_all(source, copy) == 2);
}

TEST_CASE("a file that grows is replaced by one that is there whole, however many parts it takes") {
  const TemporaryFolder from;
  const TemporaryFolder to;
  write(to.path() / "metrics.jsonl", "of an older copy\n");
  const std::string lines(300'000, 'm');
  write(from.path() / "metrics.jsonl", lines);
  MirrorSource source(from.path());
  MirrorCopy copy(to.path());
  copy.take(*source.next());
  std::ofstream(from.path() / "metrics.jsonl", std::ios::app) << "meanwhile\n";
  copy.take(*source.next());
  CHECK(text_of(to.path() / "metrics.jsonl") == "of an older copy\n");
  copy_all(source, copy);
  CHECK(text_of(to.path() / "metrics.jsonl") == lines + "meanwhile\n");
  std::ofstream(from.path() / "metrics.jsonl", std::ios::app) << lines;
  copy_all(source, copy);
  CHECK(text_of(to.path() / "metrics.jsonl") == lines + "meanwhile\n" + lines);
}

TEST_CASE("a copy writes into its own folder alone") {
  const TemporaryFolder to;
  MirrorCopy copy(to.path());
  for (const char* name :
       {"../evil", "/etc/passwd", ".", "..", ".bashrc", "a/b", "", "run.lock", "x.partial"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(copy.take({.file = name, .last = true, .bytes = {}}), InputError);
  }
  const TemporaryFolder elsewhere;
  write(elsewhere.path() / "precious", "precious");
  const auto precious = elsewhere.path() / "precious";
  std::filesystem::create_symlink(precious, to.path() / "link.jsonl");
  std::filesystem::create_hard_link(precious, to.path() / "name.jsonl");
  REQUIRE(::mkfifo((to.path() / "pipe.jsonl").c_str(), 0600) == 0);
  for (const char* name : {"link.jsonl", "name.jsonl", "pipe.jsonl"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(copy.take({.file = name, .appends = true, .bytes = {'x'}}), InputError);
  }
  // Where the parts of a whole file are gathered nothing of another one is written over.
  std::filesystem::create_symlink(precious, to.path() / "a.copying");
  std::filesystem::create_hard_link(precious, to.path() / "b.copying");
  REQUIRE(::mkfifo((to.path() / "c.copying").c_str(), 0600) == 0);
  for (const char* name : {"a", "b", "c"}) {
    CAPTURE(name);
    copy.take({.file = name, .last = true, .bytes = {'x'}});
    CHECK(std::filesystem::is_regular_file(std::filesystem::symlink_status(to.path() / name)));
    CHECK(text_of(to.path() / name) == "x");
  }
  CHECK(text_of(precious) == "precious");
}

}  // namespace tessera::engine
