#include "engine/data/text/class_names.h"

#include <string>
#include <string_view>
#include <sys/stat.h>

#include "tests/engine/data/samples.h"
#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/data/text/read_file.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

using engine::read_class_names;
using tests::Bytes;
using tests::has;
using tests::input_error_of;
using tests::TemporaryFolder;

namespace {

using Names = std::vector<std::string>;

Names names_of(const TemporaryFolder& folder, std::string_view text) {
  tests::write_bytes(folder / "names.txt", Bytes(text.begin(), text.end()));
  return read_class_names(folder / "names.txt");
}

std::string refusal_of(const TemporaryFolder& folder, std::string_view text) {
  return input_error_of([&] { (void)names_of(folder, text); });
}

// Code units as UTF-16 of either byte order.
std::string utf16(std::u16string_view text, bool high_first) {
  std::string bytes;
  for (const char16_t unit : text) {
    const char high = static_cast<char>(unit >> 8);
    const char low = static_cast<char>(unit & 0xff);
    bytes += high_first ? high : low;
    bytes += high_first ? low : high;
  }
  return bytes;
}

}  // namespace

TEST_CASE("names are the same however an editor ended lines, and with or without a mark") {
  const TemporaryFolder folder;
  const Names expected{"ant", "honey bee"};
  for (const std::string_view text : {"ant\nhoney bee\n",
                                      "ant\nhoney bee",
                                      "ant\r\nhoney bee\r\n",
                                      "ant\rhoney bee\r",
                                      " ant \n\thoney bee  \n\n \n",
                                      "\xef\xbb\xbf"
                                      "ant\r\nhoney bee"}) {
    CAPTURE(text);
    CHECK(names_of(folder, text) == expected);
  }
}

TEST_CASE("names in UTF-16 of both byte orders are read as UTF-8, beyond 16 bits too") {
  const TemporaryFolder folder;
  const Names expected{"K\xc3\xa4se", "\xe8\x9c\x82", "\xf0\x9f\x90\x9d"};
  for (const bool high_first : {false, true}) {
    CAPTURE(high_first);
    const std::u16string text = u"K\u00e4se\r\n\u8702\r\n\U0001f41d\r\n";
    CHECK(names_of(folder, utf16(u"\ufeff" + text, high_first)) == expected);
    CHECK(names_of(folder, utf16(text, high_first)) == expected);
  }
}

TEST_CASE("UTF-16 that is cut off or broken, and zero bytes, are refused") {
  const TemporaryFolder folder;
  CHECK(has(refusal_of(folder, utf16(u"\ufeffant\n", false) + "x"), "odd number"));
  const std::u16string alone{0xfeff, u'a', 0xd83d, u'\n'};
  CHECK(has(refusal_of(folder, utf16(alone, false)), "UTF-16"));
  CHECK(has(refusal_of(folder, std::string_view("ant\nb\0e\n", 8)), "names.txt:2: "));
}

TEST_CASE("a blank line among names is refused by its number, for it would move those after it") {
  const TemporaryFolder folder;
  CHECK(has(refusal_of(folder, "ant\n\nbee\n"), "names.txt:2: this line is blank"));
  CHECK(has(refusal_of(folder, "ant\r\nbee\r\n \t\r\ncat"), "names.txt:3: this line is blank"));
  CHECK(has(refusal_of(folder, "\nant\n"), "names.txt:1: this line is blank"));
}

TEST_CASE("what holds no names is refused without a word of its content") {
  const TemporaryFolder folder;
  CHECK(has(refusal_of(folder, ""), "empty"));
  CHECK(has(refusal_of(folder, "\r\n \n"), "empty"));
  const std::string message = refusal_of(folder, "ant\n" + std::string(5000, 'k'));
  CHECK(has(message, "names.txt:2: "));
  CHECK(!has(message, "kkk"));
}

TEST_CASE("only regular files and links to them are read") {
  const TemporaryFolder folder;
  tests::write_text(folder / "names.txt", "ant\n");
  std::filesystem::create_symlink(folder / "names.txt", folder / "link");
  CHECK(read_class_names(folder / "link") == Names{"ant"});
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(has(input_error_of([&] { (void)read_class_names(folder / "pipe"); }), "pipe"));
  CHECK(has(input_error_of([] { (void)read_class_names("/dev/zero"); }), "device"));
  CHECK(has(input_error_of([&] { (void)engine::read_bytes(folder / "pipe", 100); }), "pipe"));
}
