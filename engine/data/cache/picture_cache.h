// Keeps pictures of files as they are once decoded and reduced, so that each is decoded once on a
// machine and not by every rank in every epoch. What is kept does not depend on how a picture is
// then augmented, and has the bits of a picture that is decoded anew.
//
// Ranks of a machine share one: they divide decoding among them, by claims in a PictureTable, and
// read what another has decoded where it lies. Contents are in the shared memory or in files of a
// CacheFolder.

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "engine/data/cache/cache_folder.h"
#include "engine/data/cache/picture_table.h"
#include "engine/data/cache/shared_memory.h"

namespace tessera::engine {

struct PictureCacheOptions {
  Index pictures = 0;                 // that there are for it
  Index bytes = 0;                    // room for contents in memory; 0 with a folder
  std::filesystem::path folder = {};  // of contents; empty: they are in memory
  std::function<void(const std::string& sentence)> warn = {};  // any thread calls it
};

// Moves not. All functions may be called by several threads.
class PictureCache {
 public:
  // Ranks that share the memory give the same options. Throws InputError.
  PictureCache(SharedMemory memory, PictureCacheOptions options);

  // The picture of a file, of which `key` says which one and that it is unchanged. Nothing where
  // another rank or thread is decoding it, unless this one `waits`. Throws InputError as
  // read_picture_file(). The picture must not outlive the cache.
  [[nodiscard]] std::optional<Picture> read(const std::filesystem::path& path,
                                            std::uint64_t key,
                                            Index channels,
                                            const Detail& detail,
                                            bool waits);

  // What this rank's reads came to.
  struct Counts {
    Index kept = 0;     // pictures that were there, decoded
    Index decoded = 0;  // those that were not
  };
  [[nodiscard]] Counts counts() const;

  // Contents that all ranks that share it have used or made.
  [[nodiscard]] Index bytes() const { return table_.used_bytes(); }
  // Of that, what is in memory.
  [[nodiscard]] Index memory_bytes() const { return folder_ ? 0 : bytes(); }
  // Null where contents are in memory.
  [[nodiscard]] const CacheFolder* folder() const { return folder_ ? &*folder_ : nullptr; }

 private:
  class Claim;

  struct Asked {
    const std::filesystem::path& path;
    Index channels;
    const Detail& detail;
  };

  [[nodiscard]] std::optional<Picture> kept(const PictureTable::Slot& slot, Index channels);
  [[nodiscard]] Picture decoded(const Asked& asked);
  [[nodiscard]] Picture fill(PictureTable::Slot& slot, const Asked& asked);
  void keep_in_memory(Claim& claim, const Picture& picture);
  [[nodiscard]] Picture fill_from_folder(Claim& claim, const Asked& asked);
  void keep_in_folder(Claim& claim, const CacheFolder::Name& name, const Picture& picture);
  void count(Index Counts::*what);

  SharedMemory memory_;
  PictureCacheOptions options_;
  PictureTable table_;
  std::optional<CacheFolder> folder_;
  mutable std::mutex mutex_;
  Counts counts_;
};

}  // namespace tessera::engine
