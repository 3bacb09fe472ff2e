#include "engine/moving/shipment.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <utility>

#include "engine/base/in_threads.h"
#include "engine/comm/agreement.h"
#include "engine/data/inspection/inspection.h"
#include "engine/moving/move_lists.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

using Problem = std::optional<std::string>;

namespace {

// What travels of a file: the checksums of its samples, then their bytes.
Index travelling_bytes(const MovedFile& file) {
  return file.bytes + static_cast<Index>((file.end - file.begin) * sizeof(std::uint64_t));
}

void expect_intact(int from,
                   const std::vector<MovedSample>& samples,
                   const MovedFile& file,
                   std::span<const std::byte> bytes) {
  std::span<const std::byte> rest = bytes.subspan((file.end - file.begin) * sizeof(std::uint64_t));
  for (std::size_t i = file.begin; i < file.end; ++i) {
    std::uint64_t sum = 0;
    std::memcpy(&sum, bytes.data() + (i - file.begin) * sizeof(sum), sizeof(sum));
    const auto sample = rest.first(static_cast<std::size_t>(samples[i].bytes));
    if (checksum(sample) != sum) {
      throw InputError(
          fmt::format("sample {} of rank {} arrived damaged: start again, what has arrived is kept",
                      samples[i].item,
                      from));
    }
    rest = rest.subspan(sample.size());
  }
}

}  // namespace

Shipment::Shipment(const partitioner::DataMap& data_map,
                   const std::string& map,
                   std::filesystem::path folder,
                   const Communicator& communicator,
                   const Dataset& dataset)
    : communicator_(communicator), dataset_(dataset), folder_(std::move(folder)) {
  throw_agreed(communicator, problem_of([&] { list(data_map, map); }));
  tell_receivers(data_map);
  leave_out_what_is_there();
  measure();
}

void Shipment::list(const partitioner::DataMap& data_map, const std::string& map) {
  for (auto& [to, items] : items_to_send(data_map, dataset_, communicator_.rank(), map)) {
    std::vector<MovedSample>& samples = sent_[to];
    for (const Index item : items) {
      samples.push_back(moved_sample(dataset_, item));
    }
    files_sent_[to] = moved_files(samples);
  }
}

void Shipment::tell_receivers(const partitioner::DataMap& data_map) {
  const std::map<int, Index> counts = items_to_receive(data_map, communicator_.rank());
  std::vector<int> from;
  for (const auto& [rank, count] : counts) {
    from.push_back(rank);
  }
  BytesByRank lists;
  for (const auto& [to, samples] : sent_) {
    lists[to] = packed(samples);
  }
  for (const auto& [rank, list] : exchange_pairs(communicator_, lists, from)) {
    arrivals_.try_emplace(rank, folder_, rank, unpacked(list), dataset_.class_names());
  }
}

Shipment::Parcel Shipment::parcel_of(const std::vector<MovedFile>& files,
                                     std::span<const std::byte> wanted) {
  Parcel parcel;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (wanted[i] != std::byte{0}) {
      parcel.files.push_back(i);
      parcel.bytes += travelling_bytes(files[i]);
    }
  }
  return parcel;
}

// Receivers say what they have, by checksums; senders compare and say what they will send.
void Shipment::leave_out_what_is_there() {
  BytesByRank sums;
  for (const auto& [from, arrival] : arrivals_) {
    const std::vector<std::uint64_t> there = arrival.checksums_there();
    const auto bytes = bytes_of(there.data(), std::ssize(there));
    sums[from].assign(bytes.begin(), bytes.end());
  }
  std::vector<int> to;
  for (const auto& [rank, samples] : sent_) {
    to.push_back(rank);
  }
  BytesByRank wanted;
  Problem problem;
  for (const auto& [rank, bytes] : exchange_pairs(communicator_, sums, to)) {
    problem =
        problem_of([&, rank = rank, &bytes = bytes] { wanted[rank] = wanted_by(rank, bytes); });
    if (problem) {
      break;
    }
  }
  throw_agreed(communicator_, problem);
  std::vector<int> from;
  for (const auto& [rank, arrival] : arrivals_) {
    from.push_back(rank);
  }
  const BytesByRank coming = exchange_pairs(communicator_, wanted, from);
  for (const auto& [rank, flags] : wanted) {
    parcels_sent_[rank] = parcel_of(files_sent_.at(rank), flags);
  }
  for (const auto& [rank, flags] : coming) {
    parcels_received_[rank] = parcel_of(arrivals_.at(rank).files(), flags);
  }
}

// A byte for each file: 0 where the receiver has it.
std::vector<std::byte> Shipment::wanted_by(int rank, std::span<const std::byte> bytes) const {
  const std::vector<MovedSample>& samples = sent_.at(rank);
  std::vector<std::uint64_t> there(samples.size());
  expects(bytes.size() == there.size() * sizeof(std::uint64_t), "a checksum for each sample");
  std::memcpy(there.data(), bytes.data(), bytes.size());
  const std::vector<MovedFile>& files = files_sent_.at(rank);
  std::vector<std::byte> wanted(files.size(), std::byte{1});
  std::vector<Problem> problems(files.size());
  for_each_in_threads(std::ssize(files), [&](Index number) {
    const auto at = static_cast<std::size_t>(number);
    const MovedFile& file = files[at];
    if (std::all_of(there.begin() + static_cast<std::ptrdiff_t>(file.begin),
                    there.begin() + static_cast<std::ptrdiff_t>(file.end),
                    [](std::uint64_t sum) { return sum != 0; })) {
      problems[at] = problem_of([&] {
        wanted[at] = std::byte{is_there(samples, file, there) ? std::uint8_t{0} : std::uint8_t{1}};
      });
    }
  });
  for (const Problem& problem : problems) {
    if (problem) {
      throw InputError(*problem);
    }
  }
  return wanted;
}

bool Shipment::is_there(const std::vector<MovedSample>& samples,
                        const MovedFile& file,
                        const std::vector<std::uint64_t>& there) const {
  for (std::size_t i = file.begin; i < file.end; ++i) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(samples[i].bytes));
    read_sample(dataset_, samples[i], bytes);
    if (checksum(bytes) != there[i]) {
      return false;
    }
  }
  return true;
}

void Shipment::measure() {
  struct Counts {
    Index samples = 0;
    Index there = 0;
    Index bytes = 0;
    Index sent = 0;
    Index received = 0;
  };
  Counts mine;
  for (const auto& [rank, samples] : sent_) {
    const Parcel& parcel = parcels_sent_.at(rank);
    mine.samples += std::ssize(samples);
    mine.there += std::ssize(samples);
    mine.sent += parcel.bytes;
    for (const std::size_t file : parcel.files) {
      const MovedFile& sent = files_sent_.at(rank)[file];
      mine.there -= static_cast<Index>(sent.end - sent.begin);
      mine.bytes += sent.bytes;
    }
  }
  for (const auto& [rank, parcel] : parcels_received_) {
    mine.received += parcel.bytes;
  }
  for (const Counts& theirs : communicator_.of_ranks(mine)) {
    size_.samples += theirs.samples;
    size_.there_before += theirs.there;
    size_.bytes += theirs.bytes;
    size_.busiest_bytes = std::max({size_.busiest_bytes, theirs.sent, theirs.received});
  }
}

// The files of a parcel that travel in a round: those that begin in its share of the bytes.
std::vector<std::size_t> Shipment::files_of_round(const Parcel& parcel,
                                                  const std::vector<MovedFile>& files,
                                                  Index round,
                                                  Index rounds) {
  const auto share = [&](Index number) {
    return static_cast<double>(parcel.bytes) * static_cast<double>(number) /
           static_cast<double>(rounds);
  };
  std::vector<std::size_t> some;
  Index begin = 0;
  for (const std::size_t file : parcel.files) {
    const auto at = static_cast<double>(begin);
    if (at >= share(round) && at < share(round + 1)) {
      some.push_back(file);
    }
    begin += travelling_bytes(files[file]);
  }
  return some;
}

Shipment::Batch Shipment::read(Index round, Index rounds) const {
  Batch batch;
  for (const auto& [rank, parcel] : parcels_sent_) {
    const std::vector<MovedSample>& samples = sent_.at(rank);
    const std::vector<MovedFile>& files = files_sent_.at(rank);
    std::vector<std::byte>& bytes = batch.bytes[rank];
    for (const std::size_t number : files_of_round(parcel, files, round, rounds)) {
      const MovedFile& file = files[number];
      const std::size_t begin = bytes.size();
      bytes.resize(begin + static_cast<std::size_t>(travelling_bytes(file)));
      const Problem problem =
          problem_of([&] { read_file(samples, file, std::span<std::byte>(bytes).subspan(begin)); });
      batch.problem = batch.problem ? batch.problem : problem;
    }
  }
  return batch;
}

void Shipment::read_file(const std::vector<MovedSample>& samples,
                         const MovedFile& file,
                         std::span<std::byte> out) const {
  std::span<std::byte> sums = out.first((file.end - file.begin) * sizeof(std::uint64_t));
  std::span<std::byte> rest = out.subspan(sums.size());
  for (std::size_t i = file.begin; i < file.end; ++i) {
    const std::span<std::byte> sample = rest.first(static_cast<std::size_t>(samples[i].bytes));
    read_sample(dataset_, samples[i], sample);
    const std::uint64_t sum = checksum(sample);
    std::memcpy(sums.data(), &sum, sizeof(sum));
    sums = sums.subspan(sizeof(sum));
    rest = rest.subspan(sample.size());
  }
}

BytesByRank Shipment::room(Index round, Index rounds) const {
  BytesByRank received;
  for (const auto& [rank, parcel] : parcels_received_) {
    const std::vector<MovedFile>& files = arrivals_.at(rank).files();
    Index bytes = 0;
    for (const std::size_t file : files_of_round(parcel, files, round, rounds)) {
      bytes += travelling_bytes(files[file]);
    }
    received[rank].resize(static_cast<std::size_t>(bytes));
  }
  return received;
}

void Shipment::store(Index round, Index rounds, const BytesByRank& received) const {
  FileGroup group(folder_.parent_path());  // what is above was named by the user
  for (const auto& [rank, bytes] : received) {
    const Arrivals& arrival = arrivals_.at(rank);
    std::span<const std::byte> rest(bytes);
    for (const std::size_t number :
         files_of_round(parcels_received_.at(rank), arrival.files(), round, rounds)) {
      const MovedFile& file = arrival.files()[number];
      const auto size = static_cast<std::size_t>(travelling_bytes(file));
      const auto content = rest.first(size).last(static_cast<std::size_t>(file.bytes));
      expect_intact(rank, arrival.samples(), file, rest.first(size));
      arrival.store(number, content, group);
      rest = rest.subspan(size);
    }
  }
  group.commit();
}

void Shipment::add_arrivals(Dataset& dataset) const {
  for (const auto& [rank, arrival] : arrivals_) {
    if (const BytePictures* held = dataset.byte_pictures()) {
      BytePictures pictures{held->shape, {}, {}, held->class_names};
      arrival.add_to(pictures);
      dataset.append({std::move(pictures), folder_, dataset.channels()});
      continue;
    }
    PictureFiles pictures;
    PictureRecords records;
    pictures.class_names = dataset.class_names();
    arrival.add_to(pictures, records);
    Dataset arrived(std::move(pictures), folder_, dataset.channels());
    arrived.expect_files(std::move(records));
    dataset.append(std::move(arrived));
  }
}

}  // namespace tessera::engine
