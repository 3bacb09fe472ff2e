// What a start of a run has read of its picture files, for the next start of the same run on this
// device: digests of contents, and what headers say of decoding. What is kept of a file counts as
// long as its path, size, inode and times (of contents and of the inode) are what they were, so a
// picture that was added, replaced or given other rights is read, and all others are not.
//
// The folders are listed anew at each start; only files are not opened again. Pictures that could
// not be used are not kept: each start finds out itself why.

#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "engine/data/inspection/data_summary.h"

namespace tessera::engine {

struct FileFinding {
  std::uint64_t name = 0;  // digest of the path
  std::uint64_t change = 0;
  std::uint64_t content = 0;  // 0: not known
  Index bytes = 0;
  Index decoding_bytes = 0;  // 0: not known
  Index cached_bytes = 0;

  bool operator==(const FileFinding&) const = default;
};

struct KeptFindings {
  Index rows = 0;  // of the Detail that decoding_bytes and cached_bytes are for
  Index cols = 0;
  bool whole = false;              // whether contents are of whole files
  std::vector<FileFinding> files;  // in rising order of names, each once

  bool operator==(const KeptFindings&) const = default;
};

// The file in a folder of the findings about a data set.
[[nodiscard]] std::filesystem::path findings_file(const std::filesystem::path& folder,
                                                  const std::filesystem::path& data);

// None where the file is missing, damaged or not one of these.
[[nodiscard]] KeptFindings read_findings(const std::filesystem::path& path);
// Throws InputError.
void write_findings(const std::filesystem::path& path, const KeptFindings& findings);

// What has been found about both halves of a data set; `contents_whole` as in their records.
[[nodiscard]] KeptFindings findings_of(const InspectedData& data,
                                       const Detail& detail,
                                       bool contents_whole);

// Sets headers of pictures that are as they were, where they are known for that detail.
void recall_headers(const KeptFindings& findings, const Detail& detail, InspectedHalf& half);

// The same of contents, where they are digests of what `rules` want. For inspect().
void recall_contents(const KeptFindings& findings, const ReadingRules& rules, InspectedHalf& half);

}  // namespace tessera::engine
