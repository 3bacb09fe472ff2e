#include "engine/execution/whole_maps.h"

#include "engine/comm/exchange.h"

namespace tessera::engine {

using partitioner::Message;
using partitioner::Payload;

template <class T>
std::vector<T> gather_whole(const Communicator& communicator,
                            const Region& whole,
                            const std::vector<Region>& owned,
                            View<const T> cells) {
  std::vector<Message> messages;
  for (std::size_t from = 0; from < owned.size(); ++from) {
    if (!owned[from].empty()) {
      messages.push_back({static_cast<int>(from), 0, Payload::cells(owned[from])});
    }
  }
  const bool collects = communicator.rank() == 0;
  Tensor<T> all(collects ? whole : Region{});
  regrid(communicator, messages, cells, all.view());
  std::vector<T> plain(collects ? static_cast<std::size_t>(whole.volume()) : 0);
  if (collects) {
    copy_out(View<const T>(all.view()), whole, plain.data());
  }
  return plain;
}

template <class T>
void scatter_whole(const Communicator& communicator,
                   const Region& whole,
                   const std::vector<Region>& regions,
                   const std::vector<T>& plain,
                   View<T> cells) {
  std::vector<Message> messages;
  for (std::size_t to = 0; to < regions.size(); ++to) {
    if (!regions[to].empty()) {
      messages.push_back({0, static_cast<int>(to), Payload::cells(regions[to])});
    }
  }
  Tensor<T> all(communicator.rank() == 0 ? whole : Region{});
  if (communicator.rank() == 0) {
    copy_in(plain.data(), whole, all.view());
  }
  regrid(communicator, messages, View<const T>(all.view()), cells);
}

template std::vector<float> gather_whole(const Communicator&,
                                         const Region&,
                                         const std::vector<Region>&,
                                         View<const float>);
template std::vector<double> gather_whole(const Communicator&,
                                          const Region&,
                                          const std::vector<Region>&,
                                          View<const double>);
template void scatter_whole(const Communicator&,
                            const Region&,
                            const std::vector<Region>&,
                            const std::vector<float>&,
                            View<float>);
template void scatter_whole(const Communicator&,
                            const Region&,
                            const std::vector<Region>&,
                            const std::vector<double>&,
                            View<double>);

}  // namespace tessera::engine
