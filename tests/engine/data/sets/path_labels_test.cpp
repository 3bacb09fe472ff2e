#include "engine/data/sets/path_labels.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/support/naive_path_labels.h"
#include "tests/support/refusals.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

using engine::PathLabels;
using tests::has;

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
  CHECK(found_in("train/caf\xc3\xa9 sun.png", weather) == "sun");
  CHECK(has(found_in("train/sun\xc3\xa9.png", weather), "none of the labels"));
}

TEST_CASE("in a file's name a number may touch a label") {
  const Labels animals{"cat", "dog", "frog", "golden_retriever", "retriever"};
  CHECK(found_in("train/cat01.png", animals) == "cat");
  CHECK(found_in("train/dog-7.png", animals) == "dog");
  CHECK(found_in("train/0_frog.png", animals) == "frog");
  CHECK(found_in("train/7frog.png", animals) == "frog");
  CHECK(found_in("train/2024cat01.png", animals) == "cat");
  CHECK(found_in("train/my golden_retriever12 (2).png", animals) == "golden_retriever");
  CHECK(found_in("train/\xc3\xa9t\xc3\xa9"
                 "3.png",
                 {"\xc3\xa9t\xc3\xa9", "hiver"}) == "\xc3\xa9t\xc3\xa9");
  for (const char* path : {"train/cats01.png",    // part of a longer word
                           "train/cat01b.png",    // more than a number
                           "train/9f3cat21.png",  // letters of a number in base 16
                           "train/cat01\xc3\xa9.png",
                           "train/01catdog.png",
                           "cat01/a.png"}) {  // a folder's name
    CAPTURE(path);
    CHECK(has(found_in(path, animals), "none of the labels"));
  }
}

TEST_CASE("a number that may tell classes apart does not touch a label") {
  const Labels digits{"1", "10", "class1", "class10", "n01440764", "n01"};
  CHECK(found_in("train/class1.png", digits) == "class1");
  CHECK(found_in("train/class10.png", digits) == "class10");
  CHECK(found_in("train/n01440764.png", digits) == "n01440764");
  CHECK(found_in("train/10.png", digits) == "10");
  for (const char* name : {"class100", "class2", "n014407641", "100", "c1", "10c", "n1"}) {
    CAPTURE(name);
    CHECK(has(found_in("train/" + std::string(name) + ".png", digits), "none of the labels"));
  }
  const Labels kinds{"class", "class1", "2nd", "nd", "c", "golden_retriever1", "retriever"};
  CHECK(found_in("train/class.png", kinds) == "class");
  CHECK(found_in("train/class1.png", kinds) == "class1");
  CHECK(found_in("train/golden_retriever1.png", kinds) == "golden_retriever1");
  for (const char* name : {"class10", "class2", "3nd", "c5", "5c"}) {
    CAPTURE(name);
    CHECK(has(found_in("train/" + std::string(name) + ".png", kinds), "none of the labels"));
  }
}

TEST_CASE("a label that a number touches never decides against another one") {
  const Labels labels{"cat", "catfish", "train", "bus"};
  for (const char* path : {"cat_bus1.png",
                           "train2017_bus.png",
                           "cat/catfish01.png",
                           "bus/train2017_0001.png",
                           "bus/pictures/train2017.png"}) {
    CAPTURE(path);
    CHECK(has(found_in(path, labels), "so its class is open"));
  }
  CHECK(found_in("cat/catfish1_catfish.png", labels) == "catfish");  // a whole word as well
  CHECK(found_in("bus/train2017/0001.png", labels) == "bus");
  CHECK(found_in("bus/bus01.png", labels) == "bus");
  CHECK(found_in("bus/day2/bus01.png", labels) == "bus");
  CHECK(found_in("cat/bus/bus01.png", labels) == "bus");
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

TEST_CASE("the class of any path is that of the rule as it is stated plainly") {
  const Labels pieces{"c", "cat", "fish", "1", "0", "10", "_", "-", " ", "/", "/", ".", "\xc3\xa9"};
  std::mt19937 random(1);
  const auto text = [&](std::size_t most) {
    std::string made;
    for (std::size_t i = random() % most + 1; i > 0; --i) {
      made += pieces[random() % pieces.size()];
    }
    return made;
  };
  int classes_found = 0;
  for (int round = 0; round < 20000; ++round) {
    Labels labels;
    while (labels.size() < 3) {
      const std::string label = text(3);
      if (std::find(labels.begin(), labels.end(), label) == labels.end()) {
        labels.push_back(label);
      }
    }
    const std::string path = text(8);
    CAPTURE(path);
    CAPTURE(labels[0]);
    CAPTURE(labels[1]);
    CAPTURE(labels[2]);
    const int found = PathLabels(labels, "d.labels").find(path).label;
    CHECK(found == tests::naive_labels::class_of(path, labels));
    classes_found += found >= 0 ? 1 : 0;
  }
  CHECK(classes_found > 2000);
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
