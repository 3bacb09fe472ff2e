#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string_view>

#include "engine/chart/markup.h"
#include "engine/page/sections.h"
#include "engine/run_files/names.h"

namespace tessera::engine {

namespace {

struct PixelSize {
  std::uint32_t cols = 0;
  std::uint32_t rows = 0;
};

// Of a PNG file; nothing where it is none.
std::optional<PixelSize> png_size(std::string_view bytes) {
  constexpr std::string_view kSignature("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
  constexpr std::size_t kSizes = 8;
  if (bytes.size() < kSignature.size() + kSizes ||
      bytes.substr(0, kSignature.size()) != kSignature) {
    return std::nullopt;
  }
  const auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      value = value << 8U | static_cast<std::uint8_t>(bytes[at + i]);
    }
    return value;
  };
  return PixelSize{number(kSignature.size()), number(kSignature.size() + 4)};
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8U | (i + k < bytes.size() ? static_cast<std::uint8_t>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      const bool padding = i + k > bytes.size();
      text += padding ? '=' : kLetters[group >> (18 - 6 * k) & 63U];
    }
  }
  return text;
}

std::string sheet_html(std::string_view png,
                       const PixelSize& size,
                       const char* id,
                       const char* title,
                       const char* note) {
  return fmt::format(
      "<figure id=\"{}\"><figcaption><b>{}</b></figcaption>\n<img class=\"sheet\" alt=\"{}\" "
      "width=\"{}\" height=\"{}\" src=\"data:image/png;base64,{}\">\n<p "
      "class=\"note\">{}</p></figure>\n",
      id,
      escaped(title),
      escaped(title),
      size.cols,
      size.rows,
      base64(png),
      escaped(note));
}

}  // namespace

PageSection pictures_section(const RunData& run) {
  PageSection section{.id = "pictures", .title = "Pictures"};
  std::string sheets;
  const auto add = [&](const std::string& png,
                       const char* file,
                       const char* id,
                       const char* title,
                       const char* note) {
    if (png.empty()) {
      return;
    }
    if (const auto size = png_size(png)) {
      sheets += sheet_html(png, *size, id, title, note);
    } else {
      section.missing +=
          fmt::format("{}{} is no PNG file.", section.missing.empty() ? "Pictures: " : " ", file);
    }
  };
  add(run.training_sheet,
      run_file::kTrainingSheet,
      "training-pictures",
      "Pictures for training",
      "As the last step before the test saw them, after all augmentation. Dashed frames: objects.");
  add(run.test_sheet,
      run_file::kTestSheet,
      "test-pictures",
      "Pictures for testing",
      "In the last test. Dashed frames with names below: objects. Orange frames: what was found.");
  if (!sheets.empty()) {
    section.html = "<div class=\"grid-of-2\">\n" + sheets + "</div>\n";
  }
  return section;
}

}  // namespace tessera::engine
