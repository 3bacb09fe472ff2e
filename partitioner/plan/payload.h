// What a message carries. Each kind has units of its own; to read one as another throws.
//
//   cells          of a map or of its gradient, a region in global coordinates
//   channels       of a normalised layer: some numbers of each
//   element run    of one parameter tensor, from one owner to one holder
//   element count  of all parameters that go from one rank to another in one message, with the
//                  bytes that they take where runs of them are packed each by itself
//   images         whose targets travel
//   loss share     of a rank: no more than that

#pragma once

#include <variant>

#include "partitioner/base/errors.h"
#include "partitioner/base/region.h"

namespace tessera::partitioner {

class Payload {
 public:
  enum class Kind { Cells, Channels, ElementRun, ElementCount, Images, LossShare };

  struct ElementCount {
    Index elements = 0;
    Index packed_bytes = 0;  // 0 where they follow from the number of elements
    friend bool operator==(const ElementCount&, const ElementCount&) = default;
  };

  [[nodiscard]] static Payload cells(const Region& region) { return Payload(Cells{region}); }
  [[nodiscard]] static Payload channels(const Range& range) { return Payload(Channels{range}); }
  [[nodiscard]] static Payload element_run(const Range& range) {
    return Payload(ElementRun{range});
  }
  [[nodiscard]] static Payload element_count(const ElementCount& count) { return Payload(count); }
  [[nodiscard]] static Payload images(const Range& range) { return Payload(Images{range}); }
  [[nodiscard]] static Payload loss_share() { return Payload(LossShare{}); }

  [[nodiscard]] Kind kind() const { return static_cast<Kind>(value_.index()); }
  [[nodiscard]] const Region& cells() const { return get<Cells>().region; }
  [[nodiscard]] const Range& channels() const { return get<Channels>().range; }
  [[nodiscard]] const Range& element_run() const { return get<ElementRun>().range; }
  [[nodiscard]] const ElementCount& element_count() const { return get<ElementCount>(); }
  [[nodiscard]] const Range& images() const { return get<Images>().range; }

  friend bool operator==(const Payload&, const Payload&) = default;

 private:
  struct Cells {
    Region region;
    friend bool operator==(const Cells&, const Cells&) = default;
  };
  struct Channels {
    Range range;
    friend bool operator==(const Channels&, const Channels&) = default;
  };
  struct ElementRun {
    Range range;
    friend bool operator==(const ElementRun&, const ElementRun&) = default;
  };
  struct Images {
    Range range;
    friend bool operator==(const Images&, const Images&) = default;
  };
  struct LossShare {
    friend bool operator==(const LossShare&, const LossShare&) = default;
  };
  using Value =
      std::variant<Cells, Channels, ElementRun, ElementCount, Images, LossShare>;  // by Kind

  explicit Payload(const Value& value) : value_(value) {}

  template <class Part>
  [[nodiscard]] const Part& get() const {
    const Part* part = std::get_if<Part>(&value_);
    expects(part != nullptr, "a message is read as what it carries");
    return *part;
  }

  Value value_;
};

// What cells take on the wire.
[[nodiscard]] inline Index cell_bytes(const Region& cells, Index scalar_bytes) {
  return cells.volume() * scalar_bytes;
}

}  // namespace tessera::partitioner
