#include "engine/session/picture_caching.h"

#include <algorithm>
#include <fmt/format.h>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/comm/agreement.h"
#include "engine/comm/texts_of_ranks.h"
#include "engine/run_files/names.h"
#include "engine/system/system_memory.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

using Place = PictureCacheRequest::Place;

PictureCaching::PictureCaching(Choice choice,
                               const DataNeeds& needs,
                               const Communicator& communicator,
                               const SessionObserver& observer)
    : choice_(std::move(choice)),
      communicator_(communicator),
      observer_(observer),
      reads_(needs.own_pictures > 0),
      own_pictures_(needs.own_pictures),
      own_bytes_(needs.own_cached_bytes) {
  const std::vector<Index> pictures = communicator.of_ranks(own_pictures_);
  pictures_ = *std::max_element(pictures.begin(), pictures.end());
  if (pictures_ == 0) {
    return;
  }
  share_memory();
  const std::vector<Index> contents = communicator.of_ranks(own_bytes_);
  content_bytes_ = *std::max_element(contents.begin(), contents.end());
  const std::vector<Index> files = communicator.of_ranks(needs.own_file_bytes);
  file_bytes_ = *std::max_element(files.begin(), files.end());
  if (choice_.request.place == Place::Off) {
    return;
  }
  choose_place();
  const std::vector<Index> shares =
      communicator.of_ranks(reads_ ? share(table_bytes(place_ == Place::Memory)) : 0);
  planned_bytes_ = *std::max_element(shares.begin(), shares.end());
}

// Finds the ranks that share a cache with this one: those that read, on the same machine, and that
// can open what the first of them makes.
void PictureCaching::share_memory() {
  const std::vector<std::string> hosts = hosts_of_ranks(communicator_);
  const std::vector<int> read = communicator_.of_ranks(static_cast<int>(reads_));
  const auto first_on_host = [&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    for (std::size_t other = 0; other < at; ++other) {
      if (read[other] != 0 && hosts[other] == hosts[at]) {
        return static_cast<int>(other);
      }
    }
    return rank;
  };
  leader_ = communicator_.rank();
  const int first = first_on_host(leader_);
  if (reads_ && first == leader_) {
    memory_.emplace();
  }
  const std::vector<SharedMemory::Address> addresses =
      communicator_.of_ranks(memory_ ? memory_->address() : SharedMemory::Address());
  if (reads_ && !memory_) {
    memory_ = SharedMemory::open(addresses[static_cast<std::size_t>(first)]);
    leader_ = memory_ ? first : leader_;
    if (!memory_) {
      memory_.emplace();
    }
  }
  struct Member {
    int leader = 0;
    int reads = 0;
    Index pictures = 0;
    Index bytes = 0;
  };
  members_ = 0;
  Member all;
  for (const Member& member : communicator_.of_ranks(
           Member{leader_, static_cast<int>(reads_), own_pictures_, own_bytes_})) {
    if (member.leader == leader_ && member.reads != 0) {
      ++members_;
      all.pictures =
          choice_.parts ? all.pictures + member.pictures : std::max(all.pictures, member.pictures);
      all.bytes = choice_.parts ? all.bytes + member.bytes : std::max(all.bytes, member.bytes);
    }
  }
  members_ = std::max<Index>(members_, 1);
  own_pictures_ = all.pictures;
  own_bytes_ = all.bytes;
}

Index PictureCaching::table_bytes(bool in_memory) const {
  return PictureTable::memory_bytes(own_pictures_, in_memory ? own_bytes_ : 0);
}

// With as much again for what else needs memory, such as files on their way from a disk.
bool PictureCaching::fits_in_memory() const {
  const Index bytes = table_bytes(true);
  const bool fits =
      !reads_ || (bytes <= choice_.left.of_machine / 2 && share(bytes) <= choice_.left.of_rank);
  return on_all_ranks(communicator_, fits);
}

void PictureCaching::choose_place() {
  place_ = choice_.request.place;
  folder_ = choice_.request.folder;
  if (place_ == Place::Automatic) {
    place_ = fits_in_memory() ? Place::Memory : Place::Folder;
    folder_ = choice_.run / run_file::kPictures;
  }
  if (place_ == Place::Memory) {
    folder_.clear();
    const Index needed = share(table_bytes(true));
    throw_agreed(communicator_,
                 reads_ && choice_.request.place == Place::Memory && needed > choice_.left.of_rank
                     ? std::optional(fmt::format(
                           "--cache memory: reduced pictures take {} of the memory of a device, "
                           "and --memory-limit leaves {}: give --cache a folder for them",
                           readable_bytes(needed),
                           readable_bytes(std::max<Index>(choice_.left.of_rank, 0))))
                     : std::nullopt);
  }
}

void PictureCaching::prepare_folder() const {
  std::error_code error;
  const bool asked = choice_.request.place == Place::Folder;
  if (!leads() || folder_.empty() || (!asked && !std::filesystem::exists(folder_, error))) {
    return;
  }
  const CacheFolder folder(folder_);
  try {
    folder.prepare();
  } catch (const InputError& problem) {
    throw InputError(fmt::format("--cache {}: cannot be written ({}): choose a writable folder",
                                 folder_.string(),
                                 problem.what()));
  }
}

void PictureCaching::open() {
  if (!is_on() || pictures_ == 0) {
    return;
  }
  throw_agreed(communicator_, problem_of([&] {
                 if (!reads_) {
                   return;
                 }
                 prepare_folder();
                 cache_ = std::make_shared<PictureCache>(
                     std::move(*memory_),
                     PictureCacheOptions{.pictures = own_pictures_,
                                         .bytes = folder_.empty() ? own_bytes_ : 0,
                                         .folder = folder_,
                                         .warn = [&observer = observer_](const std::string& text) {
                                           observer.warn(text);
                                         }});
               }));
}

std::string PictureCaching::described() const {
  if (pictures_ == 0) {
    return "";
  }
  return place_ == Place::Off
             ? "decoded in every epoch"
             : fmt::format("decoded once and kept in {}: {} on each machine",
                           folder_.empty() ? "memory" : printable(folder_.string()),
                           readable_bytes(content_bytes_));
}

std::string PictureCaching::warning() const {
  const bool chosen = choice_.request.place == Place::Automatic && place_ == Place::Folder;
  return !chosen || content_bytes_ <= file_bytes_
             ? ""
             : fmt::format(
                   "reduced pictures take {} in {}, more than their files ({}), since there "
                   "is no memory for them: --cache FOLDER keeps them on another disk, "
                   "--cache off decodes them in every epoch instead",
                   readable_bytes(content_bytes_),
                   printable(folder_.string()),
                   readable_bytes(file_bytes_));
}

std::optional<PictureCacheUse> PictureCaching::use() const {
  struct Mine {
    Index bytes = 0;
    Index kept = 0;
    Index decoded = 0;
  };
  Mine mine;
  if (cache_) {
    const PictureCache::Counts counts = cache_->counts();
    mine = {leads() ? cache_->bytes() : 0, counts.kept, counts.decoded};
  }
  PictureCacheUse use{.place = place(), .bytes = 0, .kept = 0, .decoded = 0};
  for (const Mine& theirs : communicator_.of_ranks(mine)) {
    use.bytes += static_cast<double>(theirs.bytes);
    use.kept += static_cast<double>(theirs.kept);
    use.decoded += static_cast<double>(theirs.decoded);
  }
  return use.place.empty() ? std::nullopt : std::optional(use);
}

std::string PictureCaching::place() const {
  return pictures_ == 0            ? ""
         : place_ == Place::Off    ? "off"
         : place_ == Place::Memory ? "memory"
                                   : folder_.string();
}

Index PictureCaching::memory_bytes() const {
  return cache_ ? share(PictureTable::memory_bytes(own_pictures_, cache_->memory_bytes())) : 0;
}

Index PictureCaching::resident_for_others() const {
  const Index all = members_ * memory_bytes();
  return std::max<Index>(std::min(resident_shared_bytes(), all) - memory_bytes(), 0);
}

void PictureCaching::finish() {
  communicator_.barrier();  // nobody reads any more
  if (cache_ && leads() && place_ != choice_.request.place && place_ == Place::Folder) {
    cache_->folder()->remove();
  }
}

}  // namespace tessera::engine
