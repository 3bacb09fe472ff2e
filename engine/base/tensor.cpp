#include "engine/base/tensor.h"

#include <algorithm>
#include <sys/mman.h>

#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

constexpr std::size_t kLargePage = std::size_t{2} << 20U;

std::align_val_t alignment_of(std::size_t bytes) {
  return std::align_val_t{bytes < 2 * kLargePage ? kAlignment : kLargePage};
}

}  // namespace

void* allocate_array(std::size_t bytes) {
  if (bytes == 0) {
    return nullptr;
  }
  void* memory = ::operator new(bytes, alignment_of(bytes));
  if (bytes >= 2 * kLargePage) {
    ::madvise(memory, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);  // or not, as before
  }
  return memory;
}

void release_array(void* memory, std::size_t bytes) {
  ::operator delete(memory, alignment_of(bytes));
}

namespace {

// Runs of cells of a region that lie evenly apart in a view and side by side in (N, C, H, W) order:
// calls visit(cells, flat, stride, count) for each, where `flat` is the place of the first in that
// order. They are rows; of a single cell, whole blocks of channels.
template <class T, class Visit>
void for_each_run(View<T> view, const Region& region, Visit visit) {
  if (region.empty()) {
    return;
  }
  expects(contains(view.region, region), "a region lies in its view");
  const bool is_cell = region.rows.size() * region.cols.size() == 1;
  Index flat = 0;
  for (Index n = region.images.begin; n < region.images.end; ++n) {
    for (Index c = region.channels.begin; c < region.channels.end;) {
      T* const channel =
          view.cell(n, region.rows.begin, region.cols.begin) + view.channel_offset(c);
      if (is_cell) {
        const Index lane = (c - view.region.channels.begin) % view.block;
        const Index count = std::min(view.block - lane, region.channels.end - c);
        visit(channel, flat, Index{1}, count);
        flat += count;
        c += count;
        continue;
      }
      for (Index row = 0; row < region.rows.size(); ++row) {
        visit(channel + row * view.row_stride(), flat, view.block, region.cols.size());
        flat += region.cols.size();
      }
      ++c;
    }
  }
}

}  // namespace

template <class T>
void copy_out(View<const T> from, const Region& region, T* to) {
  for_each_run(from, region, [to](const T* cells, Index flat, Index stride, Index count) {
    for (Index i = 0; i < count; ++i) {
      to[flat + i] = cells[i * stride];
    }
  });
}

template <class T>
void copy_in(const T* from, const Region& region, View<T> to) {
  for_each_run(to, region, [from](T* cells, Index flat, Index stride, Index count) {
    for (Index i = 0; i < count; ++i) {
      cells[i * stride] = from[flat + i];
    }
  });
}

template <class T>
void add_in(const T* from, const Region& region, View<T> to) {
  for_each_run(to, region, [from](T* cells, Index flat, Index stride, Index count) {
    for (Index i = 0; i < count; ++i) {
      cells[i * stride] += from[flat + i];
    }
  });
}

template <class T>
void set_zero(View<T> view, const Region& region) {
  if (region.empty()) {
    return;
  }
  expects(contains(view.region, region), "a region lies in its view");
  const Index first = region.channels.begin - view.region.channels.begin;
  const Index end = region.channels.end - view.region.channels.begin;
  for (Index n = region.images.begin; n < region.images.end; ++n) {
    for (Index begin = first; begin < end;) {
      const Index block_end = (view.whole_blocks(begin) + 1) * view.block;
      const Index channels = std::min(block_end, end) - begin;
      for (Index row = region.rows.begin; row < region.rows.end; ++row) {
        T* cells = view.cell(n, row, region.cols.begin) +
                   view.channel_offset(begin + view.region.channels.begin);
        if (channels == view.block) {
          std::fill_n(cells, region.cols.size() * channels, T{});
          continue;
        }
        for (Index col = 0; col < region.cols.size(); ++col) {
          std::fill_n(cells + col * view.block, channels, T{});
        }
      }
      begin = block_end;
    }
  }
}

template void copy_out<float>(View<const float>, const Region&, float*);
template void copy_out<double>(View<const double>, const Region&, double*);
template void copy_in<float>(const float*, const Region&, View<float>);
template void copy_in<double>(const double*, const Region&, View<double>);
template void add_in<float>(const float*, const Region&, View<float>);
template void add_in<double>(const double*, const Region&, View<double>);
template void set_zero<float>(View<float>, const Region&);
template void set_zero<double>(View<double>, const Region&);

}  // namespace tessera::engine
