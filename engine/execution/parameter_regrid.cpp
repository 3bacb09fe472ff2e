#include "engine/execution/parameter_regrid.h"

#include <algorithm>
#include <span>

#include "engine/comm/tags.h"

namespace tessera::engine {

namespace {

constexpr Index kLongest = Index{1} << 26U;  // elements of a message

// Calls visit(source, target, elements) for all that goes from one run to another, in messages of
// limited length; in the same order on all ranks.
template <class Visit>
void for_each_message(const std::vector<PlacedRun>& from,
                      const std::vector<PlacedRun>& to,
                      const Visit& visit) {
  for (const PlacedRun& target : to) {
    for (const PlacedRun& source : from) {
      const Range shared = intersect(source.elements, target.elements);
      for (Index begin = shared.begin; begin < shared.end; begin += kLongest) {
        visit(source, target, Range{begin, std::min(begin + kLongest, shared.end)});
      }
    }
  }
}

}  // namespace

template <class T>
void regrid_elements(const Communicator& communicator,
                     const std::vector<PlacedRun>& from,
                     const T* mine,
                     const std::vector<PlacedRun>& to,
                     T* now) {
  const int rank = communicator.rank();
  Requests requests;
  for_each_message(
      from, to, [&](const PlacedRun& source, const PlacedRun& target, const Range& elements) {
        if (target.rank == rank && source.rank != rank) {
          communicator.post_receive(requests,
                                    source.rank,
                                    kParameterRegridTag,
                                    std::as_writable_bytes(place_of(target, elements, now)));
        }
      });
  for_each_message(
      from, to, [&](const PlacedRun& source, const PlacedRun& target, const Range& elements) {
        if (source.rank != rank) {
          return;
        }
        const std::span<const T> sent = place_of(source, elements, mine);
        if (target.rank != rank) {
          communicator.post_send(requests, target.rank, kParameterRegridTag, std::as_bytes(sent));
        } else if (mine != now) {
          std::copy(sent.begin(), sent.end(), place_of(target, elements, now).begin());
        }
      });
  requests.wait_all();
}

template void regrid_elements(const Communicator&,
                              const std::vector<PlacedRun>&,
                              const float*,
                              const std::vector<PlacedRun>&,
                              float*);
template void regrid_elements(const Communicator&,
                              const std::vector<PlacedRun>&,
                              const double*,
                              const std::vector<PlacedRun>&,
                              double*);

}  // namespace tessera::engine
