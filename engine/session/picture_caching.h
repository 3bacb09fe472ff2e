// Where a training run keeps pictures once they are decoded and reduced: chosen with the plan, so
// that its memory is counted, and shared by the ranks of each machine.
//
// All ranks call everything here together, but for what only looks; errors are AgreedErrors.

#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "engine/comm/communicator.h"
#include "engine/data/cache/picture_cache.h"
#include "engine/run_files/run_summary.h"
#include "engine/session/data_needs.h"
#include "engine/session/session_observer.h"
#include "engine/session/training_request.h"

namespace tessera::engine {

// What a plan leaves for a cache.
struct MemoryLeft {
  Index of_machine = 0;  // beside what all ranks on this one take
  Index of_rank = 0;     // up to the limit of this rank
};

class PictureCaching {
 public:
  struct Choice {
    PictureCacheRequest request;
    std::filesystem::path run;  // whose folder has the pictures that memory is not left for
    bool parts = false;         // ranks have different pictures
    MemoryLeft left;
  };

  // `needs`: this rank's, with nothing where it does not read. All must outlive it.
  PictureCaching(Choice choice,
                 const DataNeeds& needs,
                 const Communicator& communicator,
                 const SessionObserver& observer);

  // Whether there is any picture that has to be decoded.
  [[nodiscard]] bool is_of_use() const { return pictures_ > 0; }
  [[nodiscard]] bool is_on() const { return place_ != PictureCacheRequest::Place::Off; }
  // What a rank takes for it at most, the same on all ranks.
  [[nodiscard]] Index planned_bytes() const { return planned_bytes_; }
  // What a machine takes for all pictures, in memory or in files.
  [[nodiscard]] Index content_bytes() const { return content_bytes_; }

  // Makes it, once; also for ranks that share it and have not asked yet.
  void open();
  // This rank's; null where it has none.
  [[nodiscard]] std::shared_ptr<PictureCache> cache() const { return cache_; }

  // "memory", a folder or "off"; empty where there is nothing to decode.
  [[nodiscard]] std::string place() const;
  // What happens to pictures, for people; empty where there is nothing to decode.
  [[nodiscard]] std::string described() const;
  // That files of the run's own take more than the pictures' do; empty where they do not.
  [[nodiscard]] std::string warning() const;

  // What it has come to on all ranks.
  [[nodiscard]] std::optional<PictureCacheUse> use() const;
  // This rank's share of the memory that was used.
  [[nodiscard]] Index memory_bytes() const;
  // What of it is resident in this process, but counts as the shares of others.
  [[nodiscard]] Index resident_for_others() const;

  // When a run is finished: what lies in its folder is of no more use.
  void finish();

 private:
  void share_memory();
  [[nodiscard]] bool fits_in_memory() const;
  void choose_place();
  void prepare_folder() const;
  [[nodiscard]] bool leads() const { return reads_ && leader_ == communicator_.rank(); }
  [[nodiscard]] Index table_bytes(bool in_memory) const;
  [[nodiscard]] Index share(Index bytes) const { return (bytes + members_ - 1) / members_; }

  Choice choice_;
  const Communicator& communicator_;
  const SessionObserver& observer_;
  bool reads_ = false;
  Index pictures_ = 0;  // of all machines' the most; 0: none has to be decoded
  // Of the ranks that share one with this rank:
  std::optional<SharedMemory> memory_;
  int leader_ = 0;
  Index members_ = 1;
  Index own_pictures_ = 0;
  Index own_bytes_ = 0;

  PictureCacheRequest::Place place_ = PictureCacheRequest::Place::Off;
  std::filesystem::path folder_;
  Index planned_bytes_ = 0;
  Index content_bytes_ = 0;
  Index file_bytes_ = 0;  // of all pictures of a machine
  std::shared_ptr<PictureCache> cache_;
};

}  // namespace tessera::engine
