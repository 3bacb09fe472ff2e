#include "engine/data/inspection/kept_findings.h"

#include <algorithm>
#include <fstream>

#include "tests/engine/data/samples.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/files/digested_file.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

using engine::Detail;
using engine::KeptFindings;
using engine::Split;
using tests::TemporaryFolder;

namespace {

namespace fs = std::filesystem;

constexpr Detail kSmall{2, 2};

void put_picture(const fs::path& path, std::uint64_t seed) {
  tests::write_png(path, 2, 3, 3, tests::random_bytes(18, seed));
}

// Six pictures for training and two for testing.
void put_data_set(const fs::path& folder) {
  for (int i = 0; i < 4; ++i) {
    for (const char* name : {"a", "b"}) {
      put_picture(folder / (i == 3 ? "test" : "train") / name / (std::to_string(i) + ".png"),
                  static_cast<std::uint64_t>(i) * 2 + (name[0] == 'a' ? 0 : 1));
    }
  }
}

engine::InspectedData opened(const fs::path& path) {
  engine::InspectedData data;
  data.path = path.string();
  data.training.emplace(engine::list_dataset(path, Split::Train, 3));
  data.testing.emplace(engine::list_dataset(path, Split::Test, 3));
  return data;
}

// What a start finds.
KeptFindings found_in(engine::InspectedData& data, const Detail& detail = kSmall) {
  for (engine::InspectedHalf* half : data.halves()) {
    half->headers = decoding_of_each(*half->dataset.files(), detail);
  }
  const engine::ReadingRules rules = reading_rules_for(data);
  inspect(data, rules, {});
  return findings_of(data, detail, rules.whole());
}

// How many pictures for training are known to a start that comes later.
Index known_contents(const KeptFindings& kept, const fs::path& path) {
  engine::InspectedData data = opened(path);
  recall_contents(kept, reading_rules_for(data), *data.training);
  const std::vector<std::uint64_t>& known = data.training->known_contents;
  return std::ssize(known) - std::count(known.begin(), known.end(), 0U);
}

Index known_headers(const KeptFindings& kept, const fs::path& path, const Detail& detail) {
  engine::InspectedData data = opened(path);
  recall_headers(kept, detail, *data.training);
  return std::count_if(data.training->headers.begin(),
                       data.training->headers.end(),
                       [](const engine::DecodingBytes& each) { return each.decoding > 0; });
}

}  // namespace

TEST_CASE("what a start has read of pictures is what the next one would read") {
  const TemporaryFolder folder;
  put_data_set(folder / "set");
  engine::InspectedData first = opened(folder / "set");
  const KeptFindings found = found_in(first);
  CHECK(found.files.size() == 8);
  const fs::path file = engine::findings_file(folder.path(), folder / "set");
  CHECK(file != engine::findings_file(folder.path(), folder / "other"));
  write_findings(file, found);
  const KeptFindings kept = engine::read_findings(file);
  CHECK(kept == found);

  engine::InspectedData second = opened(folder / "set");
  for (engine::InspectedHalf* half : second.halves()) {
    recall_headers(kept, kSmall, *half);
    recall_contents(kept, reading_rules_for(second), *half);
  }
  REQUIRE(second.training->headers.size() == first.training->headers.size());
  for (std::size_t i = 0; i < first.training->headers.size(); ++i) {
    CHECK(second.training->headers[i].decoding == first.training->headers[i].decoding);
    CHECK(second.training->headers[i].cached == first.training->headers[i].cached);
  }
  inspect(second, reading_rules_for(second), {});
  CHECK(second.training->contents == first.training->contents);
  CHECK(second.testing->contents == first.testing->contents);
  CHECK(findings_of(second, kSmall, true) == found);
}

TEST_CASE("digests that are known are taken without opening the file") {
  const TemporaryFolder folder;
  put_data_set(folder.path());
  engine::InspectedData data = opened(folder.path());
  data.training->known_contents = {11, 12, 0, 14, 15, 16};
  inspect(data, reading_rules_for(data), {});
  const std::vector<std::uint64_t>& contents = data.training->contents;
  CHECK(contents[0] == 11);
  CHECK(contents[5] == 16);
  CHECK(contents[2] == engine::content_digest(folder / "train/a/2.png", true));
}

TEST_CASE("of a data set that has changed what is new is read, and only that") {
  const TemporaryFolder folder;
  put_data_set(folder.path());
  engine::InspectedData data = opened(folder.path());
  const KeptFindings kept = found_in(data);
  CHECK(known_contents(kept, folder.path()) == 6);
  put_picture(folder / "train/a/0a.png", 20);  // comes between the others
  CHECK(known_contents(kept, folder.path()) == 6);
  CHECK(known_headers(kept, folder.path(), kSmall) == 6);
  // Other content of the same size, with the old time of its change.
  const fs::path replaced = folder / "train/b/1.png";
  const auto before = fs::last_write_time(replaced);
  put_picture(folder / "new.png", 21);
  fs::resize_file(folder / "new.png", fs::file_size(replaced));
  fs::rename(folder / "new.png", replaced);
  fs::last_write_time(replaced, before);
  CHECK(known_contents(kept, folder.path()) == 5);
  fs::remove(folder / "train/a/1.png");
  CHECK(known_contents(kept, folder.path()) == 4);
}

TEST_CASE("headers count for the detail that they were read for, contents for the same rules") {
  const TemporaryFolder folder;
  put_data_set(folder.path());
  engine::InspectedData data = opened(folder.path());
  KeptFindings kept = found_in(data);
  CHECK(known_headers(kept, folder.path(), kSmall) == 6);
  CHECK(known_headers(kept, folder.path(), {2, 3}) == 0);
  CHECK(known_contents(kept, folder.path()) == 6);
  kept.whole = false;
  CHECK(known_contents(kept, folder.path()) == 0);
}

TEST_CASE("pictures that could not be read are not kept") {
  const TemporaryFolder folder;
  put_data_set(folder.path());
  fs::resize_file(folder / "train/a/0.png", 0);
  engine::InspectedData data = opened(folder.path());
  CHECK(found_in(data).files.size() == 7);
  CHECK(data.training->bad.size() == 1);
}

TEST_CASE("a file of findings that is cut, or has numbers that cannot be, is not believed") {
  const TemporaryFolder folder;
  put_data_set(folder / "set");
  engine::InspectedData data = opened(folder / "set");
  const KeptFindings found = found_in(data);
  const fs::path file = folder / "kept";
  const auto refused = [&] { return engine::read_findings(file) == KeptFindings{}; };
  CHECK(refused());  // there is none
  write_findings(file, found);
  CHECK(!refused());
  fs::resize_file(file, fs::file_size(file) - 1);
  CHECK(refused());
  tests::write_text(file, "garbage");
  CHECK(refused());
  const auto wrong = [&](auto change) {
    KeptFindings other = found;
    change(other);
    write_findings(file, other);
    return refused();
  };
  CHECK(wrong([](KeptFindings& all) { std::swap(all.files[0], all.files[1]); }));
  CHECK(wrong([](KeptFindings& all) { all.files[3].bytes = -1; }));
  CHECK(wrong([](KeptFindings& all) { all.files[3].decoding_bytes = -1; }));
  CHECK(wrong([](KeptFindings& all) { all.files[3].cached_bytes = Index{1} << 60; }));
}
