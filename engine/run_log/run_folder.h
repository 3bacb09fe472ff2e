// The folder that a training run writes into: one run at a time, and no earlier one is lost by
// mistake. Rank 0 alone has it.
//
// A lock on a file in it, which the system takes back when the process ends however it ends, says
// that a run is in progress; a file that is left behind means nothing.

#pragma once

#include <filesystem>
#include <string>

namespace tessera::engine {

class RunFolder {
 public:
  // Makes the folder and takes it for this process. Throws InputError where another run is in
  // progress in it, or where it holds an earlier run and this one neither goes on from a checkpoint
  // in it (`resume`) nor may replace it.
  RunFolder(std::filesystem::path path, const std::filesystem::path& resume, bool replace);
  // Gives it back; a folder that was made and stayed empty is removed.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  [[nodiscard]] std::filesystem::path file(const char* name) const { return path_ / name; }

  // Whether this run goes on in its own folder.
  [[nodiscard]] bool goes_on() const { return goes_on_; }

  // Removes what an earlier run has left that this one would not write for a while; does nothing in
  // one that goes on. Throws InputError where a file that the run will write cannot be written.
  void prepare();

  // Whether the path still names this folder: it may have been deleted, or its disk taken out.
  [[nodiscard]] bool is_there() const;

  // A new folder for what must be saved elsewhere, beside this one or, by `attempt` from 0 to
  // kRescueAttempts - 1, where else there may be room. Throws InputError.
  [[nodiscard]] std::filesystem::path make_rescue_folder(int attempt) const;
  static constexpr int kRescueAttempts = 3;

 private:
  explicit RunFolder(std::filesystem::path path);
  void make();
  void lock();
  void expect_free(const std::filesystem::path& resume, bool replace);

  std::filesystem::path path_;
  std::filesystem::path absolute_;  // wherever the program goes; for what is beside it
  bool made_ = false;
  bool goes_on_ = false;
  int folder_ = -1;  // descriptors
  int lock_ = -1;
};

}  // namespace tessera::engine
