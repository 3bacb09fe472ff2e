// A folder of reduced pictures that outlasts a run: a file for each, FOLDER/1f/1fa0...-8.picture,
// named after the content of the picture's file and the reduction. Any number of runs may use it at
// once, on machines of any kind; a file appears whole or not at all, and is believed by its
// checksum and the content that it says it is of. Files may be removed at any time. A subfolder
// that is a link is not written into.
//
// What is being written lies in FOLDER/partial, and a run that was killed can leave some of it: the
// next one removes what nobody is writing.

#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "engine/data/cache/picture_entry.h"

namespace tessera::engine {

class CacheFolder {
 public:
  // Makes nothing yet.
  explicit CacheFolder(std::filesystem::path path);
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  // Throws InputError where nothing can be written there. Removes what others have left half done.
  void prepare() const;

  struct Name {
    ContentKey content;
    std::uint32_t reduction = 0;
  };
  struct Found {
    Picture picture;          // whose pixels lie in the file
    std::uint64_t stamp = 0;  // differs after every change of the file; not 0
    Index file_bytes = 0;
  };
  // Nothing where there is no such picture, or one that is damaged. It need not be checked again
  // where it is known by that stamp.
  [[nodiscard]] std::optional<Found> find(const Name& name,
                                          Index channels,
                                          std::uint64_t known_stamp = 0) const;

  // Makes or replaces the file of a picture. Throws InputError with what the system says.
  void store(const Name& name, const Picture& picture);

  // Removes all that such a folder holds, and the folder itself where it is then empty.
  void remove() const noexcept;

 private:
  [[nodiscard]] std::filesystem::path file_of(const Name& name) const;

  std::filesystem::path path_;
  std::atomic<std::uint32_t> written_{0};  // by which names differ of what is being written
};

}  // namespace tessera::engine
