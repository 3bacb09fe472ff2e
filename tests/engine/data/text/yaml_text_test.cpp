#include "engine/data/text/yaml_text.h"

#include <string>

#include "tests/engine/data/samples.h"
#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

using engine::YamlValue;
using tests::has;
using tests::input_error_of;
using tests::TemporaryFolder;
using tests::write_text;

#ifdef TESSERA_HAS_YAML

namespace {

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) {
    all += text;
  }
  return all;
}

// Each line a list of ten of the line before.
std::string bomb() {
  std::string text = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string number = std::to_string(i);
    text += "a" + number + ": &a" + number + " [" +
            repeated("*a" + std::to_string(i - 1) + ", ", 10) + "]\n";
  }
  return text;
}

}  // namespace

TEST_CASE("YAML is read with the lines of its values, aliases as what they refer to") {
  const TemporaryFolder folder;
  write_text(folder / "a.yaml",
             "\xef\xbb\xbf# a script\ndownload: |\n  import os  # - {\n  os.system('x')\n"
             "list: &l [1, '2', ~]\nagain: *l\nnone:\n'quoted': \"\\u00e9\"\n");
  const YamlValue root = engine::read_yaml(folder / "a.yaml");
  REQUIRE(root.kind == YamlValue::Map);
  CHECK(has(root.find("download")->text, "os.system('x')\n"));
  const YamlValue& again = *root.find("again");
  REQUIRE(again.items.size() == 3);
  CHECK((again.items[0].text == "1" && !again.items[0].quoted));
  CHECK((again.items[1].text == "2" && again.items[1].quoted));
  CHECK(again.items[2].kind == YamlValue::Nothing);
  CHECK(root.find("none") == nullptr);
  CHECK(root.find("quoted")->text == "\u00e9");
  CHECK(root.find("quoted")->line == 8);
}

TEST_CASE("YAML that is not fit to be read is refused with file and line") {
  const TemporaryFolder folder;
  struct Case {
    std::string text;
    const char* what;
  };
  for (const Case& each :
       {Case{bomb(), "expected at most 262144 values"},
        Case{"a: &a " + std::string(900000, 'x') + "\nb: [" + repeated("*a, ", 30) + "]\n",
             "bytes of text"},
        Case{"a: &a [*a]\n", ":1: this alias refers to what it is a part of"},
        Case{"a: *b\n", "anchor is not defined"},
        Case{repeated("[", 100000), "nested too deeply"},
        Case{repeated("- ", 1000), "nested too deeply"},
        Case{"a: 1\nb: 2\na: 3\n", ":3: a is given a second time, after line 1"},
        Case{"[a]: 1\n", ":1: expected a text or a number as key"},
        Case{"a: 1\n---\nb: 2\n", "a second document"},
        Case{"a: [1\n", "this is not YAML"},
        Case{"a: 1\nb: \xff\n", ":2: these bytes are not UTF-8"},
        Case{std::string("a: x\0y\n", 7), ":1: a zero byte"},
        Case{"# " + std::string(1 << 20, 'x'), "1048578 bytes, expected at most 1048576"}}) {
    write_text(folder / "a.yaml", each.text);
    const std::string error = input_error_of([&] { (void)engine::read_yaml(folder / "a.yaml"); });
    INFO(error);
    CHECK(has(error, "a.yaml"));
    CHECK(has(error, each.what));
    CHECK(error.size() < 300);
  }
}

#endif
