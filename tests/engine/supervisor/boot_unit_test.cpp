#include "engine/supervisor/boot_unit.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <sys/stat.h>

#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::boot_unit_text;
using engine::BootUnit;
using engine::unit_word;
using tests::has;
using tests::input_error_of;

const BootUnit kUsual{.program = "/usr/bin/tessera",
                      .folder = "/home/pi/mine",
                      .user = "pi",
                      .words = {"run", "--hostfile", "hosts"}};

// Lines that begin with `key`.
std::ptrdiff_t lines_of(const std::string& text, const std::string& key) {
  std::ptrdiff_t lines = 0;
  for (std::size_t at = text.find("\n" + key); at != std::string::npos;
       at = text.find("\n" + key, at + 1)) {
    ++lines;
  }
  return lines;
}

TEST_CASE("a unit starts the command in its folder, as its user, with the network") {
  const std::string text = boot_unit_text(kUsual);
  CHECK(has(text, "\nExecStart=\":/usr/bin/tessera\" \"run\" \"--hostfile\" \"hosts\"\n"));
  CHECK(has(text, "\nUser=pi\n"));
  CHECK(has(text, "\nWorkingDirectory=/home/pi/mine/\n"));
  CHECK(has(text, "\nRestart=on-failure\n"));
  CHECK(has(text, "\nSuccessExitStatus=129 130 143\n"));
  CHECK(has(text, "\nStartLimitBurst=60\n"));
  CHECK(has(text, "\nAfter=network-online.target\n"));
  CHECK(has(text, "\nWants=network-online.target\n"));
  CHECK(has(text, "\nWantedBy=multi-user.target\n"));
}

TEST_CASE("words of a unit are in quotes, and nothing in them means anything") {
  CHECK(unit_word("") == "\"\"");
  CHECK(unit_word("two words") == "\"two words\"");
  CHECK(unit_word("50%h") == "\"50%%h\"");
  CHECK(unit_word("a\"b\\c'd") == "\"a\\\"b\\\\c'd\"");
  CHECK(unit_word("line\nUser=root\t\x7f") == "\"line\\x0aUser=root\\x09\\x7f\"");
  CHECK(unit_word("\xc3\xa4\xff") == "\"\\xc3\\xa4\\xff\"");
  CHECK(unit_word(";") == "\";\"");
}

TEST_CASE("no word, folder or name adds a line to a unit") {
  BootUnit unit = kUsual;
  unit.words = {"x\nExecStartPre=/bin/evil\n[Service]\nUser=root", "end\\", "\r\nUser=root"};
  const std::string text = boot_unit_text(unit);
  CHECK(lines_of(text, "User=") == 1);
  CHECK(lines_of(text, "Exec") == 1);
  CHECK(lines_of(text, "[") == 2);  // the first one has no line before it
  const std::string usual = boot_unit_text(kUsual);
  CHECK(std::count(text.begin(), text.end(), '\n') == std::count(usual.begin(), usual.end(), '\n'));
  unit = kUsual;
  for (const char* user : {"", "pi\nUser=root", "p i", "-x", "%u", "pi;", "a/b"}) {
    CAPTURE(user);
    unit.user = user;
    CHECK(has(input_error_of([&] { (void)boot_unit_text(unit); }), "is not the name of a user"));
  }
  unit = kUsual;
  for (const char* folder : {"relative", "", "/a\nUser=root", "/a\xff"}) {
    CAPTURE(folder);
    unit.folder = folder;
    CHECK(has(input_error_of([&] { (void)boot_unit_text(unit); }), "working folder"));
  }
  unit = kUsual;
  for (const char* program : {"tessera", "./tessera", "/a\nUser=root", "/a\"b", "/a\\b", "/a'b"}) {
    CAPTURE(program);
    unit.program = program;
    CHECK(has(input_error_of([&] { (void)boot_unit_text(unit); }), "systemd"));
  }
}

TEST_CASE("systemd finds the program and the folder of a unit whatever they are called") {
  if (std::system("systemd-analyze --version >/dev/null 2>&1") != 0) {
    MESSAGE("skipped: systemd-analyze is not installed");
    return;
  }
  const tests::TemporaryFolder folder;
  // Where they were read in any other way, there would be no such program.
  const auto program = folder / "a  $HOME %h ; x ä";
  tests::put_bytes(program, "#!/bin/sh\n");
  REQUIRE(::chmod(program.c_str(), 0755) == 0);
  const auto verified = [&](const BootUnit& unit) {
    tests::put_bytes(folder / "tessera.service", boot_unit_text(unit));
    const std::string command = "systemd-analyze verify --man=no '" +
                                (folder / "tessera.service").string() + "' >'" +
                                (folder / "said").string() + "' 2>&1";
    const int code = std::system(command.c_str());
    const std::string said = tests::bytes_of(folder / "said");
    CAPTURE(said);
    return code == 0 && !has(said, "tessera.service:");
  };
  BootUnit unit{.program = program,
                .folder = folder / "work %h ",
                .user = "root",
                .words = {"run", "%", "$HOME ${X}", "a\"b\\", "\n", "\xff", ";", "", "-n"}};
  std::filesystem::create_directory(unit.folder);
  CHECK(verified(unit));
  unit.program = folder / "missing";
  CHECK(!verified(unit));
}

}  // namespace
