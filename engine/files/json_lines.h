// A file of a run that grows: one JSON object per line, each with the number of training steps that
// were done then ("step"). Lines are whole, also after a full disk or a kill.
//
// The file may be taken away during the run, with its folder or its disk: what was written is then
// still to be read from here.

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "engine/processes/descriptor.h"
#include "partitioner/base/region.h"

namespace tessera::engine {

class JsonLines {
 public:
  using Kept = std::function<void(const nlohmann::ordered_json& line)>;
  using Stays = std::function<bool(const nlohmann::ordered_json& line, Index step)>;

  // Keeps the lines up to `resumed_step` of a run that goes on, 0: none, or with `stays` those of
  // which it says so, and tells `kept` each of them. Throws InputError where the file cannot be
  // written.
  JsonLines(const std::filesystem::path& path,
            Index resumed_step,
            const Kept& kept = {},
            const Stays& stays = {});

  // How many lines of the earlier run could not be read and were left out, half a line at the end
  // of the file included; in words that begin with its path, or nothing where there are none.
  [[nodiscard]] Index damaged() const { return damaged_; }
  [[nodiscard]] std::optional<std::string> damage() const;

  // `line` without its end; several lines at once are as good. Throws InputError where it cannot be
  // written; no part of it stays.
  void add_line(const std::string& line);

  // The lines are on the disk afterwards. Throws InputError where that cannot be.
  void sync();

  // Whether the path still names the file that is written.
  [[nodiscard]] bool is_there() const;

  // Writes all lines into another file. Throws InputError.
  void copy_to(const std::filesystem::path& path) const;

 private:
  [[noreturn]] void fail(const char* action, int error_number) const;

  std::filesystem::path path_;
  Descriptor file_;
  std::int64_t bytes_ = 0;  // of whole lines
  Index damaged_ = 0;
};

}  // namespace tessera::engine
