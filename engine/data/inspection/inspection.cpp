#include "engine/data/inspection/inspection.h"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <malloc.h>
#include <system_error>
#include <unistd.h>
#include <unordered_map>

#include "engine/base/digest.h"
#include "engine/base/in_threads.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/regular_file.h"

namespace tessera::engine {

namespace {

std::size_t at(Index item) {
  return static_cast<std::size_t>(item);
}

constexpr Detail kLittle{64, 64};  // all of a picture is decoded, but little of it is held

// The message of `work`'s InputError without the path that it starts with; empty if there is none.
template <class Work>
std::string failure_of(const std::filesystem::path& path, Work work) {
  try {
    work();
    return {};
  } catch (const InputError& error) {
    const std::string message = error.what();
    const std::string start = InputError(path.string(), 0, "").what();
    return message.rfind(start, 0) == 0 ? message.substr(start.size()) : message;
  }
}

DataProblem problem_at(const PictureFiles& files, Index item, DataFault fault, std::string what) {
  std::string place = place_of(files, item);
  const bool listed = !files.list.empty();
  return {fault,
          std::move(place),
          listed ? fmt::format("{}: {}", picture_path(files, item).string(), what) : what};
}

// Why this picture cannot be used, if it cannot.
std::optional<DataProblem> problem_of(const PictureFiles& files,
                                      const PictureRecord& record,
                                      Index item,
                                      bool decode) {
  const std::filesystem::path path = picture_path(files, item);
  if (record.bytes < 0) {
    const std::string_view kind = irregular_kind(path);
    if (!kind.empty()) {
      return problem_at(
          files, item, DataFault::Unreadable, fmt::format("this is {}, not a picture", kind));
    }
    return problem_at(files, item, DataFault::Missing, "there is no such picture");
  }
  if (record.bytes == 0) {
    return problem_at(files, item, DataFault::Broken, "this file is empty");
  }
  if (!record.has_content) {
    return std::nullopt;
  }
  if (::access(path.c_str(), R_OK) != 0) {
    return problem_at(
        files,
        item,
        DataFault::Unreadable,
        fmt::format("this file may not be read ({})", std::generic_category().message(errno)));
  }
  const std::string broken = failure_of(path, [&] {
    if (decode) {
      (void)read_picture_file(path, 3, kLittle);
    } else {
      (void)read_picture_header(path);
    }
  });
  return broken.empty() ? std::nullopt
                        : std::optional(problem_at(files, item, DataFault::Broken, broken));
}

// The first item with each content.
using FirstOfContent = std::unordered_map<std::uint64_t, Index>;

FirstOfContent first_of_each(std::span<const std::uint64_t> contents) {
  FirstOfContent first;
  for (Index item = 0; item < std::ssize(contents); ++item) {
    if (contents[at(item)] != 0) {
      first.emplace(contents[at(item)], item);
    }
  }
  return first;
}

}  // namespace

PictureRecords record_sizes(const PictureFiles& files) {
  PictureRecords records;
  records.pictures.resize(at(files.paths.size()));
  for_each_in_threads(files.paths.size(), [&](Index item) {
    records.pictures[at(item)] = record_of(picture_path(files, item));
  });
  return records;
}

void record_contents(const PictureFiles& files,
                     const ReadingRules& rules,
                     PictureRecords& records,
                     std::span<const std::uint64_t> known) {
  records.whole = rules.whole();
  const CommonNames names(files);
  for_each_in_threads(files.paths.size(), [&](Index item) {
    PictureRecord& record = records.pictures[at(item)];
    Digest name;
    name.add(names[item]);
    if (record.bytes < 0 || name.value() % static_cast<std::uint64_t>(rules.one_of()) != 0) {
      return;
    }
    record.has_content = true;
    if (!known.empty() && known[at(item)] != 0) {
      record.content = known[at(item)];
      return;
    }
    try {
      record.content = content_digest(picture_path(files, item), records.whole);
      record.lacks_end = lacks_end_mark(picture_path(files, item));
    } catch (const InputError&) {  // bad_pictures() will say why
      record.content = 0;
    }
  });
}

Index decoding_threads(const Look& look, Index picture_bytes) {
  return std::clamp<Index>(
      look.memory_bytes / std::max<Index>(picture_bytes, 1), 1, kMostWorkingThreads);
}

std::vector<BadPicture> bad_pictures(const PictureFiles& files,
                                     const PictureRecords& records,
                                     const Look& look,
                                     std::span<const DecodingBytes> headers) {
  std::vector<std::optional<DataProblem>> problems(at(files.paths.size()));
  constexpr Index kAtOnce = 64;
  const bool decodes =
      look.decode || std::any_of(records.pictures.begin(),
                                 records.pictures.end(),
                                 [](const PictureRecord& each) { return each.lacks_end; });
  for_each_in_threads(
      files.paths.size(),
      [&](Index item) {
        const PictureRecord& record = records.pictures[at(item)];
        const bool known = !headers.empty() && headers[at(item)].decoding > 0 && record.bytes > 0 &&
                           record.content != 0;
        const bool decode = look.decode || record.lacks_end;
        if (!known || decode) {
          problems[at(item)] = problem_of(files, record, item, decode);
        }
      },
      kAtOnce,
      decodes ? decoding_threads(look, sizes_of(files, kLittle).decoding_bytes)
              : kMostWorkingThreads);
  if (decodes) {
    ::malloc_trim(0);  // each thread had memory of its own, which the allocator keeps
  }
  std::vector<BadPicture> bad;
  for (Index item = 0; item < files.paths.size(); ++item) {
    if (problems[at(item)]) {
      bad.push_back({item, std::move(*problems[at(item)])});
    }
  }
  return bad;
}

PictureSizes sizes_of(const PictureFiles& files, const Detail& detail) {
  std::vector<std::optional<PictureHeader>> headers(at(files.paths.size()));
  for_each_in_threads(files.paths.size(), [&](Index item) {
    try {
      headers[at(item)] = read_picture_header(picture_path(files, item));
    } catch (const InputError&) {  // bad_pictures() says so
    }
  });
  PictureSizes sizes;
  for (const std::optional<PictureHeader>& header : headers) {
    if (!header) {
      continue;
    }
    const Index pixels = header->rows * header->cols;
    if (sizes.pictures == 0 || pixels < sizes.least_rows * sizes.least_cols) {
      sizes.least_rows = header->rows;
      sizes.least_cols = header->cols;
    }
    if (pixels > sizes.most_rows * sizes.most_cols) {
      sizes.most_rows = header->rows;
      sizes.most_cols = header->cols;
    }
    sizes.decoding_bytes = std::max(sizes.decoding_bytes, decoding_bytes(*header, detail));
    ++sizes.pictures;
  }
  return sizes;
}

std::vector<std::uint64_t> whole_contents(const PictureRecords& records) {
  std::vector<std::uint64_t> contents;
  for (const PictureRecord& record : records.pictures) {
    const bool known = records.whole && record.has_content && record.bytes > 0;
    contents.push_back(known ? record.content : 0);
  }
  return contents;
}

std::vector<std::uint64_t> whole_contents(const BytePictures& pictures) {
  std::vector<std::uint64_t> contents;
  for (Index item = 0; item < pictures.size(); ++item) {
    contents.push_back(content_digest(pictures, item));
  }
  return contents;
}

std::vector<Repeat> repeats(std::span<const std::uint64_t> contents) {
  std::vector<Repeat> all = repeats_of(contents, contents);
  std::erase_if(all, [](const Repeat& each) { return each.item == each.first; });
  return all;
}

std::vector<Repeat> repeats_of(std::span<const std::uint64_t> contents,
                               std::span<const std::uint64_t> others) {
  const FirstOfContent first = first_of_each(others);
  std::vector<Repeat> all;
  for (Index item = 0; item < std::ssize(contents); ++item) {
    const auto same = first.find(contents[at(item)]);
    if (same != first.end()) {
      all.push_back({item, same->second});
    }
  }
  return all;
}

}  // namespace tessera::engine
