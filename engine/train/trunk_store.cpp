#include "engine/train/trunk_store.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "engine/files/digested_file.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

class MemoryStore final : public TrunkStore {
 public:
  explicit MemoryStore(Index records) : records_(static_cast<std::size_t>(records)) {}

  std::optional<TrunkRecord> find(Index number) override {
    const Kept& kept = records_[static_cast<std::size_t>(number)];
    return kept.home < 0 ? std::nullopt : std::optional(TrunkRecord{kept.home, kept.values.span()});
  }
  std::optional<std::string> keep(Index number, const TrunkRecord& record) override {
    Kept& kept = records_[static_cast<std::size_t>(number)];
    bytes_ -= kept.values.bytes();
    kept.home = record.home;
    kept.values = Array<float>(std::ssize(record.values));
    std::copy(record.values.begin(), record.values.end(), kept.values.data());
    bytes_ += kept.values.bytes();
    return std::nullopt;
  }
  [[nodiscard]] bool is_on_disk() const override { return false; }
  [[nodiscard]] Index memory_bytes() const override { return bytes_; }

 private:
  struct Kept {
    int home = -1;
    Array<float> values;
  };
  std::vector<Kept> records_;
  Index bytes_ = 0;
};

class FolderStore final : public TrunkStore {
 public:
  FolderStore(const std::filesystem::path& folder, std::uint64_t key, int rank, Index most_values)
      : folder_(folder / fmt::format("trunk-{:016x}", key) / std::to_string(rank)),
        key_(key),
        most_bytes_(static_cast<Index>(sizeof(std::int32_t)) +
                    most_values * static_cast<Index>(sizeof(float))) {}

  std::optional<TrunkRecord> find(Index number) override {
    auto content = read_digested(file_of(number), kind_of(number), most_bytes_);
    std::int32_t home = -1;
    if (!content || content->size() < sizeof(home) ||
        (content->size() - sizeof(home)) % sizeof(float) != 0) {
      return std::nullopt;
    }
    std::memcpy(&home, content->data(), sizeof(home));
    values_.resize((content->size() - sizeof(home)) / sizeof(float));
    std::memcpy(values_.data(), content->data() + sizeof(home), content->size() - sizeof(home));
    return TrunkRecord{home, values_};
  }
  std::optional<std::string> keep(Index number, const TrunkRecord& record) override {
    const auto home = static_cast<std::int32_t>(record.home);
    std::vector<std::byte> content(sizeof(home) + record.values.size_bytes());
    std::memcpy(content.data(), &home, sizeof(home));
    std::memcpy(content.data() + sizeof(home), record.values.data(), record.values.size_bytes());
    const std::filesystem::path file = file_of(number);
    try {
      std::filesystem::create_directories(file.parent_path());
      write_digested(file, kind_of(number), content);
    } catch (const std::filesystem::filesystem_error& error) {
      return fmt::format("{}: {}", file.parent_path().string(), error.code().message());
    } catch (const InputError& error) {
      return error.what();
    }
    return std::nullopt;
  }
  [[nodiscard]] bool is_on_disk() const override { return true; }
  [[nodiscard]] Index memory_bytes() const override {
    return static_cast<Index>(values_.capacity() * sizeof(float));
  }

 private:
  [[nodiscard]] std::filesystem::path file_of(Index number) const {
    return folder_ / fmt::format("{:02x}", number % 256) / fmt::format("{}.maps", number);
  }
  [[nodiscard]] std::uint64_t kind_of(Index number) const {
    return key_ ^ (0x9e3779b97f4a7c15U * static_cast<std::uint64_t>(number + 1));
  }

  std::filesystem::path folder_;
  std::uint64_t key_;
  Index most_bytes_;           // of a record
  std::vector<float> values_;  // of the record that was found last
};

}  // namespace

std::unique_ptr<TrunkStore> make_memory_store(Index records) {
  return std::make_unique<MemoryStore>(records);
}

std::unique_ptr<TrunkStore> make_folder_store(const std::filesystem::path& folder,
                                              std::uint64_t key,
                                              int rank,
                                              Index most_values) {
  return std::make_unique<FolderStore>(folder, key, rank, most_values);
}

}  // namespace tessera::engine
