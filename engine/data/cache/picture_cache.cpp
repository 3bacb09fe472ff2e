#include "engine/data/cache/picture_cache.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <thread>
#include <utility>

#include "engine/data/pictures/picture_builder.h"
#include "engine/data/text/read_file.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

// For somebody else who is decoding: after that each decodes for itself.
constexpr std::chrono::seconds kPatience{5};
constexpr std::chrono::microseconds kBetweenLooks{500};

SharedMemory mapped(SharedMemory memory, const PictureCacheOptions& options) {
  memory.map(PictureTable::memory_bytes(options.pictures, options.bytes));
  return memory;
}

}  // namespace

// A slot that is this caller's to fill. Without a word it is left as if nobody had tried.
class PictureCache::Claim {
 public:
  explicit Claim(PictureTable::Slot& slot) : slot_(slot) {}
  ~Claim() {
    if (!done_) {
      PictureTable::leave(slot_, PictureTable::State::Empty);
    }
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  void fill(const PictureTable::Content& content) {
    PictureTable::fill(slot_, content);
    done_ = true;
  }
  void leave_outside() {
    PictureTable::leave(slot_, PictureTable::State::Outside);
    done_ = true;
  }

 private:
  PictureTable::Slot& slot_;
  bool done_ = false;
};

PictureCache::PictureCache(SharedMemory memory, PictureCacheOptions options)
    : memory_(mapped(std::move(memory), options)),
      options_(std::move(options)),
      table_(memory_.bytes(), options_.pictures) {
  if (!options_.folder.empty()) {
    folder_.emplace(options_.folder);
  }
}

std::optional<Picture> PictureCache::read(const std::filesystem::path& path,
                                          std::uint64_t key,
                                          Index channels,
                                          const Detail& detail,
                                          bool waits) {
  const Asked asked{path, channels, detail};
  PictureTable::Slot* slot = table_.find(key);
  const auto begun = std::chrono::steady_clock::now();
  while (slot != nullptr) {
    const PictureTable::State state = slot->state();
    if (state == PictureTable::State::Filled) {
      if (auto picture = kept(*slot, channels)) {
        count(&Counts::kept);
        return picture;
      }
    }
    if (state == PictureTable::State::Outside ||
        std::chrono::steady_clock::now() - begun > kPatience) {
      break;
    }
    if (PictureTable::claim(*slot, state)) {
      return fill(*slot, asked);
    }
    if (!waits) {
      return std::nullopt;
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return decoded(asked);
}

// Nothing where it is gone from the folder, or damaged.
std::optional<Picture> PictureCache::kept(const PictureTable::Slot& slot, Index channels) {
  const PictureTable::Content content = slot.content();
  if (!folder_) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(memory_.bytes().data());
    return picture_of_entry(
        {bytes + content.first, static_cast<std::size_t>(content.second)}, {}, channels, false);
  }
  auto found =
      folder_->find({{content.first, content.second}, content.reduction}, channels, content.stamp);
  return found ? std::optional(std::move(found->picture)) : std::nullopt;
}

Picture PictureCache::decoded(const Asked& asked) {
  Picture picture = read_picture_file(asked.path, asked.channels, asked.detail);
  count(&Counts::decoded);
  return picture;
}

Picture PictureCache::fill(PictureTable::Slot& slot, const Asked& asked) {
  Claim claim(slot);
  if (folder_) {
    return fill_from_folder(claim, asked);
  }
  Picture picture = decoded(asked);
  keep_in_memory(claim, picture);
  return picture;
}

void PictureCache::keep_in_memory(Claim& claim, const Picture& picture) {
  const std::span<const std::uint8_t> pixels = picture.pixels();
  const Index bytes = kEntryHeadBytes + std::ssize(pixels);
  const auto begin = table_.allocate(bytes);
  if (!begin || !memory_.take(*begin, bytes)) {
    claim.leave_outside();
    return;
  }
  const EntryHead head = entry_head(picture, {});  // which is found by its slot
  std::byte* out = memory_.bytes().data() + *begin;
  std::memcpy(out, head.data(), head.size());
  std::memcpy(out + head.size(), pixels.data(), pixels.size());
  claim.fill({static_cast<std::uint64_t>(*begin),
              static_cast<std::uint64_t>(bytes),
              0,
              static_cast<std::uint32_t>(picture.reduction)});
}

Picture PictureCache::fill_from_folder(Claim& claim, const Asked& asked) {
  const std::vector<std::uint8_t> file = read_bytes(asked.path, kMostPictureBytes);
  const PictureHeader header = picture_header(file, asked.path.string());
  const CacheFolder::Name name{content_key(file),
                               static_cast<std::uint32_t>(reduction_for(header, asked.detail))};
  if (auto found = folder_->find(name, asked.channels)) {
    table_.add_used(found->file_bytes);
    claim.fill({name.content.high, name.content.low, found->stamp, name.reduction});
    found->picture.decoding_bytes = header.file_bytes;
    count(&Counts::kept);
    return std::move(found->picture);
  }
  Picture picture = decode_picture(file, asked.path.string(), asked.channels, asked.detail);
  count(&Counts::decoded);
  keep_in_folder(claim, name, picture);
  return picture;
}

// Where one cannot be written no others are tried.
void PictureCache::keep_in_folder(Claim& claim,
                                  const CacheFolder::Name& name,
                                  const Picture& picture) {
  if (table_.stopped()) {
    claim.leave_outside();
    return;
  }
  try {
    folder_->store(name, picture);
    if (const auto stored = folder_->find(name, picture.shape.channels)) {
      table_.add_used(stored->file_bytes);
      claim.fill({name.content.high, name.content.low, stored->stamp, name.reduction});
      return;
    }
  } catch (const InputError& error) {
    if (table_.first_to_stop() && options_.warn) {
      options_.warn(
          fmt::format("no more reduced pictures are kept in {}, which cannot be written "
                      "({}): those that are missing there are decoded in every epoch",
                      folder_->path().string(),
                      error.what()));
    }
  }
  claim.leave_outside();
}

PictureCache::Counts PictureCache::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void PictureCache::count(Index Counts::*what) {
  const std::lock_guard lock(mutex_);
  ++(counts_.*what);
}

}  // namespace tessera::engine
