// The keys of one section of a .cfg file, read by name and type, with a default for those it does
// not have. Numbers are taken whole or not at all: `size=3x` is an InputError with file and line.
//
// Where a key is given twice the first counts, as in Darknet. What nobody asked for by name is
// checked by the rules of cfg_keys, or else reported by complaints().

#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "partitioner/base/errors.h"
#include "partitioner/base/region.h"
#include "partitioner/cfg/cfg_sections.h"

namespace tessera::partitioner {

class CfgOptions {
 public:
  // Borrows both; they must outlive this object.
  CfgOptions(const CfgSection& section, const std::string& file);

  [[nodiscard]] const CfgSection& section() const { return section_; }
  [[nodiscard]] const std::string& file() const { return file_; }

  // Each of these marks the key as known. Keys outlive this object: they are literals.
  [[nodiscard]] bool has(std::string_view key);
  [[nodiscard]] std::string word(std::string_view key, std::string_view otherwise);
  [[nodiscard]] Index integer(std::string_view key,
                              Index otherwise,
                              Index least = std::numeric_limits<Index>::min(),
                              Index most = std::numeric_limits<Index>::max());
  [[nodiscard]] double real(std::string_view key,
                            double otherwise,
                            double least = std::numeric_limits<double>::lowest(),
                            double most = std::numeric_limits<double>::max());
  [[nodiscard]] bool flag(std::string_view key, bool otherwise);  // 0 or 1

  // Values between commas; empty without the key.
  [[nodiscard]] std::vector<Index> integers(std::string_view key);
  [[nodiscard]] std::vector<double> reals(std::string_view key);

  // What cfg_keys says of keys of such a section (by its first name) that nobody asked for: throws
  // InputError where one would change what is computed, or training.
  void apply_rules(std::string_view section);

  // Throws InputError at the key's line, or at the section's where it has no such key.
  [[noreturn]] void refuse(std::string_view key, const std::string& message) const;

  // Adds a complaint about a key, at its line or the section's.
  void warn(std::string_view key, const std::string& message);

  // What was warned of; keys given twice, keys not known, with what may have been meant, and those
  // that would only change what is saved.
  struct Complaint {
    std::string key;
    std::string message;
  };
  [[nodiscard]] std::vector<Complaint> complaints() const;

 private:
  [[nodiscard]] const CfgEntry* find(std::string_view key) const;
  const CfgEntry* take(std::string_view key);
  [[nodiscard]] std::string located(int line, const std::string& message) const;
  [[nodiscard]] InputError about(std::string_view key, const std::string& message) const;
  [[nodiscard]] std::string meant(std::string_view key) const;

  const CfgSection& section_;
  const std::string& file_;
  std::vector<std::string_view> known_;  // literals of those who asked, and keys of the table
  std::vector<std::string_view> ruled_;  // all keys of the table
  std::vector<Complaint> warned_;
};

}  // namespace tessera::partitioner
