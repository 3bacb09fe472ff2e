// Activations in memory: a region of a map, (N, C/v, H, W, v) with v the channel block of
// partitioner/base/layout.h.
//
// A Tensor owns its cells, a View borrows them; both are addressed by global coordinates, so that
// code reads as the geometry does. Lanes of the last block beyond the region's channels hold
// nothing of meaning.

#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

#include "partitioner/base/layout.h"
#include "partitioner/base/region.h"

namespace tessera::engine {

inline constexpr std::size_t kAlignment = 64;  // bytes: a cache line, and the widest vector

// Memory aligned to kAlignment, null for 0 bytes; a large piece in as large pages as the system
// has: kernels walk through many places at once, and each page that they touch needs an address in
// a small table of the processor's. Throws std::bad_alloc.
[[nodiscard]] void* allocate_array(std::size_t bytes);
void release_array(void* memory, std::size_t bytes);

// A zeroed, aligned array of fixed size.
template <class T>
class Array {
 public:
  Array() = default;
  explicit Array(Index size)
      : size_(size),
        values_(static_cast<T*>(allocate_array(bytes_of(size))), Release{bytes_of(size)}) {
    std::uninitialized_fill_n(values_.get(), static_cast<std::size_t>(size), T{});
  }

  [[nodiscard]] T* data() { return values_.get(); }
  [[nodiscard]] const T* data() const { return values_.get(); }
  [[nodiscard]] Index size() const { return size_; }
  [[nodiscard]] Index bytes() const { return static_cast<Index>(bytes_of(size_)); }
  [[nodiscard]] std::span<T> span() { return {values_.get(), static_cast<std::size_t>(size_)}; }
  [[nodiscard]] std::span<const T> span() const {
    return {values_.get(), static_cast<std::size_t>(size_)};
  }
  T& operator[](Index i) { return values_.get()[i]; }
  const T& operator[](Index i) const { return values_.get()[i]; }

 private:
  static std::size_t bytes_of(Index size) { return static_cast<std::size_t>(size) * sizeof(T); }
  struct Release {
    std::size_t bytes = 0;
    void operator()(T* values) const { release_array(values, bytes); }
  };
  Index size_ = 0;
  std::unique_ptr<T, Release> values_;
};

template <class T>
struct View {
  T* data = nullptr;
  Region region;  // what `data` holds; rows and columns may reach outside the map
  Index block = 1;

  // How many whole blocks so many channels are. To divide by what is known only when it runs takes
  // many times as long as by one of these, which nearly all maps have.
  [[nodiscard]] Index whole_blocks(Index channels) const {
    switch (block) {
      case 16:
        return channels / 16;
      case 8:
        return channels / 8;
      case 1:
        return channels;
      default:
        return channels / block;
    }
  }
  [[nodiscard]] Index row_stride() const { return region.cols.size() * block; }
  [[nodiscard]] Index block_stride() const { return region.rows.size() * row_stride(); }
  [[nodiscard]] Index image_stride() const {
    return whole_blocks(region.channels.size() + block - 1) * block_stride();
  }
  // Elements from the first channel of the first block to channel `c` of the same cell.
  [[nodiscard]] Index channel_offset(Index c) const {
    const Index local = c - region.channels.begin;
    const Index blocks = whole_blocks(local);
    return blocks * block_stride() + local - blocks * block;
  }
  // Cell (row, col) of image `n`, at the first channel.
  [[nodiscard]] T* cell(Index n, Index row, Index col) const {
    return data + (n - region.images.begin) * image_stride() +
           (row - region.rows.begin) * row_stride() + (col - region.cols.begin) * block;
  }
  [[nodiscard]] T& at(Index n, Index c, Index row, Index col) const {
    return cell(n, row, col)[channel_offset(c)];
  }
  // NOLINTNEXTLINE(google-explicit-constructor): a view of what may change is a view
  operator View<const T>() const requires(!std::is_const_v<T>) { return {data, region, block}; }
};

template <class T>
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(const Region& region)
      : region_(region),
        block_(channel_block(region.channels.size())),
        values_(blocked_volume(region)) {}

  [[nodiscard]] View<T> view() { return {values_.data(), region_, block_}; }
  [[nodiscard]] View<const T> view() const { return {values_.data(), region_, block_}; }
  [[nodiscard]] const Region& region() const { return region_; }
  [[nodiscard]] Index bytes() const { return values_.bytes(); }
  [[nodiscard]] Array<T>& values() { return values_; }

 private:
  Region region_;
  Index block_ = 1;
  Array<T> values_;
};

// Regions between views and plain (N, C, H, W) order, which is what travels: it does not depend on
// the block. `region` lies in the view; the array has region.volume() elements.

template <class T>
void copy_out(View<const T> from, const Region& region, T* to);  // assigns
template <class T>
void copy_in(const T* from, const Region& region, View<T> to);  // assigns
template <class T>
void add_in(const T* from, const Region& region, View<T> to);  // adds
template <class T>
void set_zero(View<T> view, const Region& region);  // assigns

}  // namespace tessera::engine
