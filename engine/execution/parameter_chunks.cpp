#include "engine/execution/parameter_chunks.h"

#include <algorithm>

#include "engine/comm/tags.h"

namespace tessera::engine {

using partitioner::ParameterPlan;

namespace {

Range held_elements(const ParameterPlan& plan, std::size_t rank) {
  const Range& channels = plan.required[rank];
  return {channels.begin * plan.shape.row, channels.end * plan.shape.row};
}

void sort_by_elements(std::vector<PlacedRun>& runs) {
  std::sort(runs.begin(), runs.end(), [](const PlacedRun& a, const PlacedRun& b) {
    return a.elements.begin < b.elements.begin;
  });
}

Index end_of(const std::vector<PlacedRun>& runs) {
  Index end = 0;
  for (const PlacedRun& run : runs) {
    end = std::max(end, run.elements.end);
  }
  return end;
}

// Calls visit(chunk) for all of `elements`, in order.
template <class Visit>
void for_each_chunk(const Range& elements, Index longest, Visit visit) {
  for (Index begin = elements.begin; begin < elements.end; begin += longest) {
    visit(Range{begin, std::min(begin + longest, elements.end)});
  }
}

std::size_t ranks_of_first_copy(const ParameterPlan& plan) {
  return plan.owned.size() / static_cast<std::size_t>(plan.copies);
}

// Runs of the first `ranks`, one after another in an array of each of them.
std::vector<PlacedRun> packed(const std::vector<std::vector<Range>>& of_ranks, std::size_t ranks) {
  std::vector<PlacedRun> runs;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Index at = 0;
    for (const Range& run : of_ranks[rank]) {
      runs.push_back({static_cast<int>(rank), run, at});
      at += run.size();
    }
  }
  sort_by_elements(runs);
  return runs;
}

// An owner waits until rank 0 is ready: MPI takes in small messages that nobody waits for yet, and
// those of a large network would pile up while rank 0 waits for a disk.
void send_when_asked(const Communicator& communicator, std::span<const std::byte> chunk) {
  Requests ready;
  communicator.post_receive(ready, 0, kChunkReadyTag, {});
  ready.wait_all();
  Requests sent;
  communicator.post_send(sent, 0, kChunkTag, chunk);
  sent.wait_all();
}

void ask_and_receive(const Communicator& communicator, int owner, std::span<std::byte> chunk) {
  Requests requests;
  communicator.post_receive(requests, owner, kChunkTag, chunk);
  communicator.post_send(requests, owner, kChunkReadyTag, {});
  requests.wait_all();
}

// Rank 0's part of scatter_chunks for one chunk. `spare` is for what it has no place for itself.
template <class T>
void fill_and_send(const Communicator& communicator,
                   const std::vector<PlacedRun>& to,
                   T* mine,
                   const FillChunk<T>& fill,
                   const Range& chunk,
                   std::vector<T>& spare) {
  const auto own = std::find_if(to.begin(), to.end(), [&](const PlacedRun& run) {
    return run.rank == 0 && contains(run.elements, chunk);
  });
  std::span<T> elements;
  if (own != to.end()) {
    elements = place_of(*own, chunk, mine);
  } else {
    spare.resize(std::max(spare.size(), static_cast<std::size_t>(chunk.size())));
    elements = std::span(spare).first(static_cast<std::size_t>(chunk.size()));
  }
  fill(chunk.begin, elements);
  Requests sends;
  for (const PlacedRun& run : to) {
    const Range part = intersect(run.elements, chunk);
    if (part.empty()) {
      continue;
    }
    const std::span<T> sent = elements.subspan(static_cast<std::size_t>(part.begin - chunk.begin),
                                               static_cast<std::size_t>(part.size()));
    if (run.rank != 0) {
      communicator.post_send(sends, run.rank, kChunkTag, std::as_bytes(sent));
    } else if (own == to.end()) {
      std::copy(sent.begin(), sent.end(), place_of(run, part, mine).begin());
    }
  }
  sends.wait_all();
}

}  // namespace

std::vector<PlacedRun> owned_values(const ParameterPlan& plan) {
  std::vector<PlacedRun> runs;
  for (std::size_t rank = 0; rank < ranks_of_first_copy(plan); ++rank) {
    for (const Range& run : plan.owned[rank]) {
      runs.push_back({static_cast<int>(rank), run, run.begin - held_elements(plan, rank).begin});
    }
  }
  sort_by_elements(runs);
  return runs;
}

std::vector<PlacedRun> owned_alone(const ParameterPlan& plan) {
  return packed(plan.owned, ranks_of_first_copy(plan));
}

std::vector<PlacedRun> owned_states(const ParameterPlan& plan) {
  std::vector<PlacedRun> runs;
  for (std::size_t rank = 0; rank < ranks_of_first_copy(plan); ++rank) {
    for (const Range& run : plan.owned[rank]) {
      const auto of_rank = static_cast<int>(rank);
      runs.push_back({of_rank, run, place_in_state(plan, of_rank, run)});
    }
  }
  sort_by_elements(runs);
  return runs;
}

std::vector<PlacedRun> all_states(const ParameterPlan& plan) {
  return packed(plan.updated, plan.updated.size());
}

Index place_in_state(const ParameterPlan& plan, int rank, const Range& elements) {
  Index at = 0;
  for (const Range& run : plan.updated[static_cast<std::size_t>(rank)]) {
    if (contains(run, elements)) {
      return at + elements.begin - run.begin;
    }
    at += run.size();
  }
  expects(false, "the rank updates the elements");
  return -1;
}

std::vector<PlacedRun> held_values(const ParameterPlan& plan) {
  std::vector<PlacedRun> runs;
  for (std::size_t rank = 0; rank < plan.required.size(); ++rank) {
    const Range elements = held_elements(plan, rank);
    if (!elements.empty()) {
      runs.push_back({static_cast<int>(rank), elements, 0});
    }
  }
  return runs;
}

template <class T>
void gather_chunks(const Communicator& communicator,
                   const std::vector<PlacedRun>& from,
                   const T* mine,
                   const TakeChunk<T>& take,
                   Index longest) {
  const int rank = communicator.rank();
  std::vector<T> arrived;
  for (const PlacedRun& run : from) {
    if (run.rank == 0) {
      if (rank == 0) {
        take(place_of(run, run.elements, mine));
      }
      continue;
    }
    for_each_chunk(run.elements, longest, [&](const Range& chunk) {
      if (rank == 0) {
        arrived.resize(static_cast<std::size_t>(chunk.size()));
        ask_and_receive(communicator, run.rank, std::as_writable_bytes(std::span(arrived)));
        take(arrived);
      } else if (rank == run.rank) {
        send_when_asked(communicator, std::as_bytes(place_of(run, chunk, mine)));
      }
    });
  }
}

template <class T>
void scatter_chunks(const Communicator& communicator,
                    const std::vector<PlacedRun>& to,
                    T* mine,
                    const FillChunk<T>& fill,
                    Index longest) {
  std::vector<T> spare;
  Requests receives;
  for_each_chunk({0, end_of(to)}, longest, [&](const Range& chunk) {
    if (communicator.rank() == 0) {
      fill_and_send(communicator, to, mine, fill, chunk, spare);
      return;
    }
    for (const PlacedRun& run : to) {
      const Range part = intersect(run.elements, chunk);
      if (run.rank == communicator.rank() && !part.empty()) {
        communicator.post_receive(
            receives, 0, kChunkTag, std::as_writable_bytes(place_of(run, part, mine)));
      }
    }
  });
  receives.wait_all();
}

template void gather_chunks(const Communicator&,
                            const std::vector<PlacedRun>&,
                            const float*,
                            const TakeChunk<float>&,
                            Index);
template void gather_chunks(const Communicator&,
                            const std::vector<PlacedRun>&,
                            const double*,
                            const TakeChunk<double>&,
                            Index);
template void scatter_chunks(
    const Communicator&, const std::vector<PlacedRun>&, float*, const FillChunk<float>&, Index);
template void scatter_chunks(
    const Communicator&, const std::vector<PlacedRun>&, double*, const FillChunk<double>&, Index);

}  // namespace tessera::engine
