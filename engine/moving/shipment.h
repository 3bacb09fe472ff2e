// What moves between the devices by a data map and is not there yet: the lists that both ends know,
// and the bytes of it, in rounds.
//
// In each round every pair of devices moves the same share of what it has to move: all links are
// busy until the end, whatever moves between whom.

#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/comm/pair_exchange.h"
#include "engine/data/dataset.h"
#include "engine/moving/arrivals.h"
#include "engine/moving/moved_sample.h"
#include "partitioner/balance/data_map.h"

namespace tessera::engine {

// Totals of all devices.
struct ShipmentSize {
  Index samples = 0;        // that the map moves
  Index there_before = 0;   // of them, from an earlier attempt
  Index bytes = 0;          // of the others
  Index busiest_bytes = 0;  // that the busiest device sends, or receives
};

class Shipment {
 public:
  // `map` is what messages call the data map, `folder` that of this device for what arrives. Ranks
  // tell each other what comes, and by checksums what is there already. Throws AgreedError. All
  // ranks call this together; communicator and data set must outlive it.
  Shipment(const partitioner::DataMap& data_map,
           const std::string& map,
           std::filesystem::path folder,
           const Communicator& communicator,
           const Dataset& dataset);

  [[nodiscard]] const ShipmentSize& size() const { return size_; }

  // What this rank sends in a round of `rounds`. What cannot be read travels as it is then.
  struct Batch {
    BytesByRank bytes;
    std::optional<std::string> problem;
  };
  [[nodiscard]] Batch read(Index round, Index rounds) const;
  // Room for what it receives.
  [[nodiscard]] BytesByRank room(Index round, Index rounds) const;
  // Writes that to its files. Throws InputError where it cannot, or where something is damaged.
  void store(Index round, Index rounds, const BytesByRank& received) const;

  // Adds what has arrived to the data set: all of it.
  void add_arrivals(Dataset& dataset) const;

 private:
  // What one device sends to another: the files that the receiver does not have yet.
  struct Parcel {
    std::vector<std::size_t> files;
    Index bytes = 0;
  };

  void list(const partitioner::DataMap& data_map, const std::string& map);
  void tell_receivers(const partitioner::DataMap& data_map);
  void leave_out_what_is_there();
  [[nodiscard]] std::vector<std::byte> wanted_by(int rank, std::span<const std::byte> bytes) const;
  [[nodiscard]] bool is_there(const std::vector<MovedSample>& samples,
                              const MovedFile& file,
                              const std::vector<std::uint64_t>& there) const;
  void measure();
  void read_file(const std::vector<MovedSample>& samples,
                 const MovedFile& file,
                 std::span<std::byte> out) const;
  static Parcel parcel_of(const std::vector<MovedFile>& files, std::span<const std::byte> wanted);
  static std::vector<std::size_t> files_of_round(const Parcel& parcel,
                                                 const std::vector<MovedFile>& files,
                                                 Index round,
                                                 Index rounds);

  const Communicator& communicator_;
  const Dataset& dataset_;
  std::filesystem::path folder_;
  // By the rank at the other end.
  std::map<int, std::vector<MovedSample>> sent_;
  std::map<int, std::vector<MovedFile>> files_sent_;
  std::map<int, Arrivals> arrivals_;
  std::map<int, Parcel> parcels_sent_;
  std::map<int, Parcel> parcels_received_;
  ShipmentSize size_;
};

}  // namespace tessera::engine
