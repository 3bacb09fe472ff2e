// Indices of different kinds that do not mix: that of a transfer is neither that of an action nor
// an int. A vector is indexed by one kind alone; an int becomes an index only where it is said of
// what.
//
//   using TransferIndex = StrongIndex<struct TransferTag>;
//   IndexedVector<TransferIndex, Transfer> transfers;
//   for (const TransferIndex i : transfers.indices()) { ... transfers[i] ... }
//
// Not the type `Index` of sizes and coordinates; see region.h.

#pragma once

#include <compare>
#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

namespace tessera {

// Counted from 0. That of nothing is -1, and is what an index is unless it is given a number.
template <class Tag>
class StrongIndex {
 public:
  constexpr StrongIndex() = default;
  constexpr explicit StrongIndex(int number) : number_(number) {}

  // For text, and for what numbers things by itself.
  [[nodiscard]] constexpr int number() const { return number_; }

  constexpr StrongIndex& operator++() {
    ++number_;
    return *this;
  }
  // As pointers do: so many further on or back, and how many lie between.
  friend constexpr StrongIndex operator+(StrongIndex index, int count) {
    return StrongIndex(index.number_ + count);
  }
  friend constexpr StrongIndex operator-(StrongIndex index, int count) {
    return StrongIndex(index.number_ - count);
  }
  friend constexpr int operator-(StrongIndex a, StrongIndex b) { return a.number_ - b.number_; }

  friend constexpr auto operator<=>(const StrongIndex&, const StrongIndex&) = default;

 private:
  int number_ = -1;
};

// [begin, end), to loop over.
template <class Key>
class IndexRange {
 public:
  class Iterator {
   public:
    constexpr explicit Iterator(Key at) : at_(at) {}
    constexpr Key operator*() const { return at_; }
    constexpr Iterator& operator++() {
      ++at_;
      return *this;
    }
    friend constexpr bool operator==(const Iterator&, const Iterator&) = default;

   private:
    Key at_;
  };

  // Requires begin <= end.
  constexpr IndexRange(Key begin, Key end) : begin_(begin), end_(end) {}

  [[nodiscard]] constexpr Iterator begin() const { return Iterator(begin_); }
  [[nodiscard]] constexpr Iterator end() const { return Iterator(end_); }

 private:
  Key begin_;
  Key end_;
};

// A std::vector whose elements are found by `Key` alone. Like that, it does not test whether it has
// an element; contains() tells.
template <class Key, class T>
class IndexedVector {
 public:
  using value_type = T;
  using iterator = typename std::vector<T>::iterator;
  using const_iterator = typename std::vector<T>::const_iterator;

  IndexedVector() = default;
  explicit IndexedVector(std::size_t size, const T& value = T()) : values_(size, value) {}
  IndexedVector(std::initializer_list<T> values) : values_(values) {}

  [[nodiscard]] typename std::vector<T>::reference operator[](Key key) { return values_[at(key)]; }
  [[nodiscard]] typename std::vector<T>::const_reference operator[](Key key) const {
    return values_[at(key)];
  }
  [[nodiscard]] bool contains(Key key) const { return key >= Key(0) && key < end_index(); }

  [[nodiscard]] T& front() { return values_.front(); }
  [[nodiscard]] const T& front() const { return values_.front(); }
  [[nodiscard]] const T& back() const { return values_.back(); }

  [[nodiscard]] bool empty() const { return values_.empty(); }
  [[nodiscard]] std::size_t size() const { return values_.size(); }
  // One behind the last: that of the next element to be added.
  [[nodiscard]] Key end_index() const { return Key(static_cast<int>(values_.size())); }
  // Of the elements that there are now, should others be added meanwhile.
  [[nodiscard]] IndexRange<Key> indices() const { return {Key(0), end_index()}; }

  [[nodiscard]] iterator begin() { return values_.begin(); }
  [[nodiscard]] iterator end() { return values_.end(); }
  [[nodiscard]] const_iterator begin() const { return values_.begin(); }
  [[nodiscard]] const_iterator end() const { return values_.end(); }

  // For what looks at all elements and asks for no index.
  [[nodiscard]] const std::vector<T>& elements() const { return values_; }

  void reserve(std::size_t size) { values_.reserve(size); }
  void resize(std::size_t size) { values_.resize(size); }
  // Returns the index of what is added.
  Key push_back(T value) {
    const Key added = end_index();
    values_.push_back(std::move(value));
    return added;
  }

  friend bool operator==(const IndexedVector&, const IndexedVector&) = default;

 private:
  static constexpr std::size_t at(Key key) { return static_cast<std::size_t>(key.number()); }

  std::vector<T> values_;
};

}  // namespace tessera
