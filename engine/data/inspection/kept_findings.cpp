#include "engine/data/inspection/kept_findings.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <span>
#include <system_error>

#include "engine/base/digest.h"
#include "engine/files/digested_file.h"

namespace tessera::engine {

namespace {

constexpr std::uint64_t kFindingsKind = 0x3130646e69667474U;  // "ttfind01"
constexpr Index kMostFindings = Index{1} << 24;
constexpr Index kMostFoundBytes = Index{1} << 36;  // more than any picture takes that can be used

struct FindingsHead {
  Index rows = 0;
  Index cols = 0;
  std::uint64_t whole = 0;
  std::uint64_t files = 0;
};

// Relative paths are looked for from the list's folder and from the current one: which of them it
// was is told by the inode, which a record's change is made of.
std::uint64_t name_digest(const PictureFiles& files, Index item) {
  Digest name;
  name.add(std::string_view(files.base.native()));
  name.add(files.paths[item]);
  return name.value();
}

// Calls `use` with the item and what is known of it, for all files that are as they were.
void for_each_known(const KeptFindings& findings,
                    const InspectedHalf& half,
                    const std::function<void(std::size_t item, const FileFinding&)>& use) {
  const PictureFiles* const files = half.dataset.files();
  if (files == nullptr || findings.files.empty()) {
    return;
  }
  for (Index item = 0; item < files->paths.size(); ++item) {
    const std::uint64_t name = name_digest(*files, item);
    const auto found = std::lower_bound(
        findings.files.begin(),
        findings.files.end(),
        name,
        [](const FileFinding& one, std::uint64_t other) { return one.name < other; });
    const PictureRecord& record = half.records.pictures[static_cast<std::size_t>(item)];
    if (found != findings.files.end() && found->name == name && record.bytes > 0 &&
        found->bytes == record.bytes && found->change == record.change) {
      use(static_cast<std::size_t>(item), *found);
    }
  }
}

bool by_name(const FileFinding& one, const FileFinding& other) {
  return one.name < other.name;
}

bool is_possible(const FileFinding& finding) {
  return finding.bytes > 0 && finding.decoding_bytes >= 0 && finding.cached_bytes >= 0 &&
         finding.decoding_bytes <= kMostFoundBytes && finding.cached_bytes <= kMostFoundBytes;
}

}  // namespace

std::filesystem::path findings_file(const std::filesystem::path& folder,
                                    const std::filesystem::path& data) {
  std::error_code error;
  Digest name;
  name.add(std::string_view(std::filesystem::absolute(data, error).native()));
  return folder / fmt::format("{:016x}.pictures", name.value());
}

KeptFindings read_findings(const std::filesystem::path& path) {
  const auto content = read_digested(path, kFindingsKind);
  FindingsHead head;
  if (!content || content->size() < sizeof(head)) {
    return {};
  }
  std::memcpy(&head, content->data(), sizeof(head));
  if (head.files > static_cast<std::uint64_t>(kMostFindings) || head.whole > 1 ||
      content->size() != sizeof(head) + head.files * sizeof(FileFinding)) {
    return {};
  }
  KeptFindings findings{head.rows, head.cols, head.whole == 1, {}};
  findings.files.resize(static_cast<std::size_t>(head.files));
  if (!findings.files.empty()) {
    std::memcpy(findings.files.data(),
                content->data() + sizeof(head),
                findings.files.size() * sizeof(FileFinding));
  }
  const bool possible = std::all_of(findings.files.begin(), findings.files.end(), is_possible) &&
                        std::is_sorted(findings.files.begin(), findings.files.end(), by_name);
  return possible ? findings : KeptFindings{};
}

void write_findings(const std::filesystem::path& path, const KeptFindings& findings) {
  const FindingsHead head{findings.rows,
                          findings.cols,
                          static_cast<std::uint64_t>(findings.whole),
                          findings.files.size()};
  std::vector<std::byte> content(sizeof(head) + findings.files.size() * sizeof(FileFinding));
  std::memcpy(content.data(), &head, sizeof(head));
  if (!findings.files.empty()) {
    std::memcpy(content.data() + sizeof(head),
                findings.files.data(),
                findings.files.size() * sizeof(FileFinding));
  }
  write_digested(path, kFindingsKind, content);
}

KeptFindings findings_of(const InspectedData& data, const Detail& detail, bool contents_whole) {
  KeptFindings findings{detail.rows, detail.cols, contents_whole, {}};
  for (const InspectedHalf* half : data.halves()) {
    const PictureFiles* const files = half->dataset.files();
    for (Index item = 0; files != nullptr && item < files->paths.size(); ++item) {
      const auto i = static_cast<std::size_t>(item);
      const PictureRecord& record = half->records.pictures[i];
      const DecodingBytes header = half->headers.empty() ? DecodingBytes{} : half->headers[i];
      const FileFinding finding{.name = name_digest(*files, item),
                                .change = record.change,
                                .content = record.content,
                                .bytes = record.bytes,
                                .decoding_bytes = header.decoding,
                                .cached_bytes = header.cached};
      if (is_possible(finding) && (finding.content != 0 || finding.decoding_bytes > 0)) {
        findings.files.push_back(finding);
      }
    }
  }
  std::stable_sort(findings.files.begin(), findings.files.end(), by_name);
  findings.files.erase(std::unique(findings.files.begin(),
                                   findings.files.end(),
                                   [](const FileFinding& one, const FileFinding& other) {
                                     return one.name == other.name;
                                   }),
                       findings.files.end());
  return findings;
}

void recall_headers(const KeptFindings& findings, const Detail& detail, InspectedHalf& half) {
  if (findings.rows != detail.rows || findings.cols != detail.cols) {
    return;
  }
  half.headers.assign(half.records.pictures.size(), {});
  for_each_known(findings, half, [&](std::size_t item, const FileFinding& known) {
    half.headers[item] = {known.decoding_bytes, known.cached_bytes};
  });
}

void recall_contents(const KeptFindings& findings, const ReadingRules& rules, InspectedHalf& half) {
  if (findings.whole != rules.whole()) {
    return;
  }
  half.known_contents.assign(half.records.pictures.size(), 0);
  for_each_known(findings, half, [&](std::size_t item, const FileFinding& known) {
    half.known_contents[item] = known.content;
  });
}

}  // namespace tessera::engine
