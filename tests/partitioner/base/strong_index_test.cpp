#include "partitioner/base/strong_index.h"

#include <map>
#include <string>
#include <type_traits>

#include <doctest/doctest.h>

namespace {

using tessera::IndexedVector;
using tessera::IndexRange;
using tessera::StrongIndex;

using Apple = StrongIndex<struct AppleTag>;
using Pear = StrongIndex<struct PearTag>;
using Apples = IndexedVector<Apple, std::string>;

template <class Vector, class Key>
concept IsIndexedBy = requires(Vector vector, Key key) {
  vector[key];
};
template <class Vector, class Key>
concept TellsIfContained = requires(const Vector vector, Key key) {
  vector.contains(key);
};
template <class A, class B>
concept IsComparable = requires(A a, B b) {
  a == b;
}
|| requires(A a, B b) {
  a < b;
};
template <class A, class B>
concept IsAdded = requires(A a, B b) {
  a + b;
};

// Kinds do not mix, neither with each other nor with numbers.
static_assert(!std::is_convertible_v<int, Apple>);
static_assert(!std::is_convertible_v<std::size_t, Apple>);
static_assert(!std::is_convertible_v<Apple, int>);
static_assert(!std::is_convertible_v<Apple, bool>);
static_assert(!std::is_constructible_v<int, Apple>);
static_assert(!std::is_constructible_v<Apple, Pear>);
static_assert(!std::is_assignable_v<Apple&, Pear>);
static_assert(!std::is_assignable_v<Apple&, int>);
static_assert(std::is_constructible_v<Apple, int>);
static_assert(IsComparable<Apple, Apple> && !IsComparable<Apple, Pear>);
static_assert(!IsComparable<Apple, int> && !IsComparable<int, Apple>);
static_assert(!IsAdded<Apple, Apple> && !IsAdded<Apple, Pear>);
static_assert(std::is_same_v<decltype(Apple() + 1), Apple>);
static_assert(std::is_same_v<decltype(Apple() - Apple()), int>);

static_assert(IsIndexedBy<Apples, Apple> && IsIndexedBy<const Apples, Apple>);
static_assert(!IsIndexedBy<Apples, Pear> && !IsIndexedBy<const Apples, Pear>);
static_assert(!IsIndexedBy<Apples, int> && !IsIndexedBy<Apples, std::size_t>);
static_assert(TellsIfContained<Apples, Apple> && !TellsIfContained<Apples, Pear>);
static_assert(!std::is_convertible_v<Apples, std::vector<std::string>>);
static_assert(!std::is_convertible_v<std::vector<std::string>, Apples>);
static_assert(!std::is_constructible_v<IndexRange<Apple>, Pear, Pear>);

// As small and as plain as an int.
static_assert(sizeof(Apple) == sizeof(int) && std::is_trivially_copyable_v<Apple>);
static_assert(sizeof(Apples) == sizeof(std::vector<std::string>));

}  // namespace

TEST_CASE("an index is that of nothing until it has a number, and is counted on from there") {
  CHECK(Apple().number() == -1);
  Apple apple(3);
  CHECK(apple.number() == 3);
  CHECK((++apple).number() == 4);
  CHECK(apple == Apple(4));
  CHECK(apple + 2 == Apple(6));
  CHECK(apple - 2 == Apple(2));
  CHECK(apple - Apple(1) == 3);
  CHECK(apple != Apple(3));
  CHECK((Apple() < Apple(0) && Apple(0) < Apple(1) && Apple(2) >= Apple(2)));
  const std::map<Apple, int> by_apple = {{Apple(1), 10}, {Apple(0), 20}};
  CHECK(by_apple.begin()->first == Apple(0));
}

TEST_CASE("a range of indices goes from the first to the one before the last") {
  std::vector<int> numbers;
  for (const Apple apple : IndexRange(Apple(2), Apple(5))) {
    numbers.push_back(apple.number());
  }
  CHECK(numbers == std::vector<int>{2, 3, 4});
  for (const Apple apple : IndexRange(Apple(2), Apple(2))) {
    FAIL("an empty range has an index: ", apple.number());
  }
}

TEST_CASE("an indexed vector finds what was added by the index that adding it returned") {
  Apples apples;
  CHECK(apples.empty());
  CHECK(apples.end_index() == Apple(0));
  CHECK(apples.indices().begin() == apples.indices().end());
  const Apple first = apples.push_back("red");
  const Apple second = apples.push_back("green");
  CHECK(first == Apple(0));
  CHECK(apples[first] == "red");
  CHECK(apples[second] == "green");
  apples[first] = "yellow";
  CHECK(apples.elements() == std::vector<std::string>{"yellow", "green"});
  CHECK(apples == Apples{"yellow", "green"});
  CHECK(apples != Apples(2, "green"));
  CHECK(apples.size() == 2);
}

TEST_CASE("an indexed vector contains the indices of its elements and no others") {
  const Apples apples(3);
  CHECK(!apples.contains(Apple()));
  for (const Apple apple : apples.indices()) {
    CHECK(apples.contains(apple));
  }
  CHECK(!apples.contains(apples.end_index()));
}

TEST_CASE("elements that are added in a loop over the indices are not looped over") {
  Apples apples{"red", "green"};
  for (const Apple apple : apples.indices()) {
    apples.push_back(apples[apple]);
  }
  CHECK(apples == Apples{"red", "green", "red", "green"});
}

TEST_CASE("an indexed vector of truth values is written to like any other") {
  IndexedVector<Pear, bool> ripe(2, false);
  ripe[Pear(1)] = true;
  const auto& read = ripe;
  CHECK(!read[Pear(0)]);
  CHECK(read[Pear(1)]);
}
