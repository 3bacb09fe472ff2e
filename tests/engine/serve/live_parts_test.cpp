#include "engine/serve/live_parts.h"

#include <algorithm>
#include <array>
#include <string>
#include <zlib.h>

#include "tests/support/refusals.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::LiveParts;
using engine::Piece;
using tests::has;

constexpr std::size_t kNoFirst = 99;

std::string since(const LiveParts& parts, const std::string& mark) {
  return engine::plain_text(parts.since(mark));
}

// Text that does not get shorter, another one for each seed.
std::string noise(std::size_t bytes, unsigned seed) {
  std::string text(bytes, ' ');
  for (char& letter : text) {
    seed = seed * 1664525U + 1013904223U;
    letter = static_cast<char>('!' + (seed >> 24U) % 90U);
  }
  return text;
}

std::string uncompressed(const std::string& file, std::size_t most) {
  constexpr int kGzip = 31;
  z_stream stream{};
  REQUIRE(inflateInit2(&stream, kGzip) == Z_OK);
  std::string text(most, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(file.data()));
  stream.avail_in = static_cast<uInt>(file.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  const int end = inflate(&stream, Z_FINISH);
  text.resize(stream.total_out);
  CHECK(end == Z_STREAM_END);  // length and checksum are right, too
  CHECK(stream.avail_in == 0);
  inflateEnd(&stream);
  return text;
}

TEST_CASE("pieces that were compressed one by one are one file of gzip together") {
  for (const std::size_t bytes : {0, 1, 1000, 100'000}) {
    const Piece one = engine::make_piece(noise(bytes, 1));
    const Piece other = engine::make_piece(std::string(bytes, 'a'));
    const std::vector<const Piece*> pieces{&one, &other, &one};
    const std::string text = engine::plain_text(pieces);
    CHECK(text.size() == 3 * bytes);
    CHECK(uncompressed(engine::gzip_file(pieces), text.size() + 1) == text);
  }
  CHECK(uncompressed(engine::gzip_file({}), 1).empty());
}

TEST_CASE("what has changed since a mark is sent, and nothing else") {
  LiveParts parts("a", kNoFirst);
  parts.offer({"one", "two", ""});
  parts.release(0);
  const std::string first = parts.mark();
  CHECK(since(parts, "") ==
        "<div id=\"part-0\">\none</div>\n<div id=\"part-1\">\ntwo</div>\n<div "
        "id=\"part-2\">\n</div>\n");
  CHECK(since(parts, first).empty());

  parts.offer({"one", "2", ""});
  CHECK(since(parts, first).empty());  // it has not been released
  parts.release(1);
  CHECK(since(parts, first) == "<div id=\"part-1\">\n2</div>\n");
  CHECK(since(parts, parts.mark()).empty());
  parts.offer({"one", "2", ""});
  parts.release(2);
  CHECK(since(parts, first) == "<div id=\"part-1\">\n2</div>\n");
  CHECK(since(parts, parts.mark()).empty());
}

TEST_CASE("a mark of another program, or of nobody, stands for nothing that was seen") {
  LiveParts parts("a", kNoFirst);
  parts.offer({"one", "two"});
  parts.release(0);
  const std::string all = since(parts, "");
  for (const std::string& mark : {std::string("b-2"),
                                  std::string("a-3"),
                                  std::string("a--1"),
                                  std::string("a-"),
                                  std::string("a"),
                                  std::string("a-2x"),
                                  std::string("a-99999999999999999999"),
                                  std::string(100'000, 'a')}) {
    CAPTURE(mark);
    CHECK(since(parts, mark) == all);
  }
  CHECK(since(parts, "a-2").empty());
}

TEST_CASE("no more bytes are released than there are to spend, however much changes") {
  constexpr std::size_t kPart = 20'000;
  constexpr int kSeconds = 1000;
  LiveParts parts("a", 2);
  double bytes = 0;
  std::array<int, 5> releases{};
  std::string mark;
  for (int second = 0; second < kSeconds; ++second) {
    std::vector<std::string> html{"step " + std::to_string(second)};
    for (unsigned part = 1; part < 5; ++part) {
      html.push_back(noise(kPart, 10U * static_cast<unsigned>(second) + part));
    }
    parts.offer(html);
    parts.release(second);
    const auto news = parts.since(mark);
    mark = parts.mark();
    if (second > 0) {
      for (const Piece* piece : news) {
        bytes += static_cast<double>(piece->deflated.size());
        ++releases[static_cast<std::size_t>(piece->text[14] - '0')];
      }
    }
  }
  constexpr double kSmall = 100;
  CHECK(bytes < (LiveParts::kBytes_per_s + kSmall) * (kSeconds + LiveParts::kMostSaved_s) + kPart);
  CHECK(bytes > 0.8 * LiveParts::kBytes_per_s * kSeconds);
  CHECK(releases[0] == kSeconds - 1);  // a small one comes at once
  for (const std::size_t part : {1, 3, 4}) {
    CHECK(releases[part] > 20);
    CHECK(releases[2] > 1.4 * releases[part]);  // what comes first waits half as long
  }
}

TEST_CASE("a part that is larger than all others keeps none of them waiting for long") {
  constexpr int kSeconds = 1000;
  LiveParts parts("a", kNoFirst);
  std::string mark;
  double bytes = 0;
  std::array<int, 2> releases{};
  std::array<int, 2> released_at{};
  int longest = 0;  // that the other one waited
  for (int second = 0; second < kSeconds; ++second) {
    const auto seed = static_cast<unsigned>(second);
    parts.offer({noise(400'000, seed), noise(8000, seed + kSeconds)});
    parts.release(second);
    for (const Piece* piece : parts.since(mark)) {
      const auto part = static_cast<std::size_t>(piece->text[14] - '0');
      bytes += second > 0 ? static_cast<double>(piece->deflated.size()) : 0;
      longest = part == 1 ? std::max(longest, second - released_at[1]) : longest;
      released_at[part] = second;
      ++releases[part];
    }
    mark = parts.mark();
  }
  CHECK(releases[0] > 3);
  CHECK(releases[1] > 100);
  CHECK(longest <= 2 * LiveParts::kMostSaved_s);
  CHECK(bytes < 2.2 * LiveParts::kBytes_per_s * kSeconds);
}

TEST_CASE("how a run ended is released at once, whatever it takes") {
  LiveParts parts("a", kNoFirst);
  parts.offer({noise(100'000, 1), noise(100'000, 2)});
  parts.release(0);
  const std::string mark = parts.mark();
  parts.offer({noise(100'000, 3), noise(100'000, 4)});
  parts.release(0, true);
  CHECK(parts.since(mark).size() == 2);
}

}  // namespace
