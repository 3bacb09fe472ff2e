#include "engine/tensor.h"

#include <sys/mman.h>

#include "partitioner/errors.h"

namespace engine {

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

// Calls visit(cells, flat, stride) for each image, channel and row of the region: `cells` points to
// the first of region.cols.size() cells `stride` apart in the view, `flat` is where the row begins
// in (N, C, H, W) order.
template <class T, class Visit>
void for_each_row(View<T> view, const Region& region, Visit visit) {
  if (region.empty()) {
    return;
  }
  partitioner::expects(partitioner::contains(view.region, region), "a region lies in its view");
  Index flat = 0;
  for (Index n = region.images.begin; n < region.images.end; ++n) {
    for (Index c = region.channels.begin; c < region.channels.end; ++c) {
      const Index channel = view.channel_offset(c);
      for (Index row = region.rows.begin; row < region.rows.end; ++row) {
        visit(view.cell(n, row, region.cols.begin) + channel, flat, view.block);
        flat += region.cols.size();
      }
    }
  }
}

}  // namespace

template <class T>
void copy_out(View<const T> from, const Region& region, T* to) {
  for_each_row(from, region, [&](const T* cells, Index flat, Index stride) {
    for (Index i = 0; i < region.cols.size(); ++i) {
      to[flat + i] = cells[i * stride];
    }
  });
}

template <class T>
void copy_in(const T* from, const Region& region, View<T> to) {
  for_each_row(to, region, [&](T* cells, Index flat, Index stride) {
    for (Index i = 0; i < region.cols.size(); ++i) {
      cells[i * stride] = from[flat + i];
    }
  });
}

template <class T>
void add_in(const T* from, const Region& region, View<T> to) {
  for_each_row(to, region, [&](T* cells, Index flat, Index stride) {
    for (Index i = 0; i < region.cols.size(); ++i) {
      cells[i * stride] += from[flat + i];
    }
  });
}

template <class T>
void set_zero(View<T> view, const Region& region) {
  for_each_row(view, region, [&](T* cells, Index, Index stride) {
    for (Index i = 0; i < region.cols.size(); ++i) {
      cells[i * stride] = T{};
    }
  });
}

template void copy_out<float>(View<const float>, const Region&, float*);
template void copy_out<double>(View<const double>, const Region&, double*);
template void copy_in<float>(const float*, const Region&, View<float>);
template void copy_in<double>(const double*, const Region&, View<double>);
template void add_in<float>(const float*, const Region&, View<float>);
template void add_in<double>(const double*, const Region&, View<double>);
template void set_zero<float>(View<float>, const Region&);
template void set_zero<double>(View<double>, const Region&);

}  // namespace engine
