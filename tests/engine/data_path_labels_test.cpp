#include <string>
#include <vector>

#include "tests/support/refusals.h"
#include <doctest/doctest.h>

#include "engine/data/path_labels.h"

using engine::PathLabels;
using test::has;

namespace {

using Labels = std::vector<std::string>;

// The label found, or the problem.
std::string found_in(const std::string& path, const Labels& labels) {
  const PathLabels::Found found = PathLabels(labels, "d.labels").find(path);
  CHECK((found.label < 0) == !found.problem.empty());
  return found.label < 0 ? found.problem : labels[static_cast<std::size_t>(found.label)];
}

}  // namespace

TEST_CASE("a label is found as a whole word only") {
  const Labels weather{"rain", "sun"};
  CHECK(found_in("train/01_sun.png", weather) == "sun");
  CHECK(found_in("/home/rainer/train/sunny/7-rain.jpg", weather) == "rain");
  CHECK(has(found_in("train/sunny01.png", weather), "none of the labels"));
  CHECK(has(found_in("train/sun01.png", weather), "none of the labels"));
  CHECK(found_in("train/caf\xc3\xa9 sun.png", weather) == "sun");
  CHECK(has(found_in("train/sun\xc3\xa9.png", weather), "none of the labels"));
}

TEST_CASE("a label within a longer one that was found does not count") {
  const Labels animals{"cat", "catfish", "retriever", "golden_retriever"};
  CHECK(found_in("pictures/3_catfish.png", animals) == "catfish");
  CHECK(found_in("pictures/3_cat.png", animals) == "cat");
  CHECK(found_in("pictures/golden_retriever-7.png", animals) == "golden_retriever");
  CHECK(found_in("pictures/black retriever.png", animals) == "retriever");
}

TEST_CASE("the file's name decides before its folders, the nearest folder before those above") {
  const Labels flowers{"rose", "tulip", "lily"};
  CHECK(found_in("/home/tulip/flowers/01_rose.png", flowers) == "rose");
  CHECK(found_in("/home/tulip/flowers/rose/01.png", flowers) == "rose");
  CHECK(found_in("/home/tulip/flowers/rose/day2/01.png", flowers) == "rose");
  CHECK(found_in("rose/01_rose.png", flowers) == "rose");
}

TEST_CASE("where two labels fit, the class is open and both are named") {
  const Labels labels{"rain", "sun", "catfish", "1", "10"};
  for (const char* path : {"sun_and_rain.png", "rain/7_sun.png", "sun rain/7.png"}) {
    CAPTURE(path);
    const std::string problem = found_in(path, labels);
    CHECK(has(problem, "\"sun\""));
    CHECK(has(problem, "\"rain\""));
    CHECK(has(problem, "rename"));
  }
  CHECK(found_in("rain and sun/7_sun.png", labels) == "sun");
  CHECK(found_in("sun/7_catfish.png", labels) == "catfish");
  // A number in a file's name may only count the pictures.
  CHECK(has(found_in("1/10.png", labels), "\"10\""));
}

TEST_CASE("the names of well-known data sets give their classes") {
  CHECK(found_in("/home/me/cifar/train/1000_frog.png", {"airplane", "frog"}) == "frog");
  CHECK(found_in("cifar100/train/9_maple_tree.png", {"maple_tree", "tree"}) == "maple_tree");
  CHECK(found_in("mnist/train/t_00000_c5.png", {"c0", "c5"}) == "c5");
  CHECK(found_in("mnist/train/00001_5.png", {"0", "1", "5", "10"}) == "5");
  CHECK(found_in("imagenet/n01440764/n01440764_1.JPEG", {"n01440764", "n01"}) == "n01440764");
  CHECK(found_in("val/ILSVRC2012_val_00000001_n01751748.JPEG", {"n01751748"}) == "n01751748");
  CHECK(found_in("pets/dog.4001.jpg", {"cat", "dog"}) == "dog");
  CHECK(found_in("code/c++.png", {"c", "c++"}) == "c++");
}
