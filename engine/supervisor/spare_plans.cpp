#include "engine/supervisor/spare_plans.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/files/atomic_file.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

std::filesystem::path SparePlans::file_of(const std::vector<int>& devices) const {
  return folder_ / fmt::format("partition-{}.toml", fmt::join(devices, "-"));
}

void SparePlans::want(const std::vector<int>& devices,
                      const TrainingRequest& request,
                      const std::vector<std::string>& device_names) {
  if (known_.emplace(devices, false).second) {
    queue_.push_back({devices, request, device_names});
  }
}

void SparePlans::look() {
  if (search_) {
    const auto& end = search_->look();
    if (!end) {
      return;
    }
    known_[under_way_->devices] = *end == ProcessEnd();
    search_.reset();
  }
  if (queue_.empty()) {
    return;
  }
  under_way_ = queue_.front();
  queue_.pop_front();
  const std::filesystem::path request = folder_ / "spare.json";
  std::vector<std::string> words{
      program_, "agent", "--spare", request.string(), file_of(under_way_->devices).string()};
  words.insert(words.end(), under_way_->device_names.begin(), under_way_->device_names.end());
  try {
    write_atomically(request, text_of(under_way_->request));
    search_.emplace(ProgramToStart{
        .words = std::move(words), .environment = {{"OMP_NUM_THREADS", "1"}}, .idle = true});
  } catch (const InputError&) {
    // A later fault searches for itself.
  }
}

std::string SparePlans::found(const std::vector<int>& devices) const {
  const auto known = known_.find(devices);
  return known != known_.end() && known->second ? file_of(devices).string() : std::string();
}

}  // namespace tessera::engine
