// The ways in which model files of detectors put their sections together: each kind of block parses
// with the keys that such files have, has the shapes of its paper, and plans on four ranks.

#include <string>

#include <doctest/doctest.h>

#include "partitioner/cfg/model_file.h"
#include "partitioner/network/losses.h"
#include "partitioner/plan/plan.h"

namespace tessera::partitioner {

namespace {

std::string detector_net(int side) {
  return "[net]\nbatch=4\nsubdivisions=1\nchannels=3\nheight=" + std::to_string(side) +
         "\nwidth=" + std::to_string(side) + "\nlearning_rate=0.001\n";
}

std::string normalized(int filters, int size, int stride, const std::string& activation) {
  return "[convolutional]\nbatch_normalize=1\nfilters=" + std::to_string(filters) +
         "\nsize=" + std::to_string(size) + "\nstride=" + std::to_string(stride) +
         "\npad=1\nactivation=" + activation + '\n';
}

// Three anchors and two classes: 21 channels.
std::string head(const std::string& activation, const std::string& keys) {
  return "[convolutional]\nfilters=21\nsize=1\nactivation=" + activation +
         "\n[yolo]\nmask=0,1,2\nanchors=4,5, 8,7, 15,20, 30,28\nclasses=2\nnum=4\n"
         "ignore_thresh=.7\ntruth_thresh=1\n" +
         keys;
}

std::string section(const std::string& name, const std::string& keys) {
  return '[' + name + "]\n" + keys + '\n';
}

// Parses without a warning, and plans with tiles on four ranks.
Network planned(const std::string& text) {
  const ModelFile model = parse_model(text, "detector.cfg");
  for (const std::string& warning : model.warnings) {
    FAIL_CHECK(warning);
  }
  Shorthand shorthand;
  shorthand.grid_rows = 2;
  shorthand.grid_cols = 2;
  const Partition partition = make_partition(model.network, shorthand);
  CHECK(check(model.network, make_plan(model.network, partition, 4)).empty());
  return model.network;
}

}  // namespace

TEST_CASE("halves of channels, joined again, and a head at two sizes of cells") {
  const std::string leaky = "leaky";
  const std::string v4 =
      "scale_x_y=1.05\ncls_normalizer=1.0\niou_normalizer=0.07\niou_loss=ciou\n"
      "nms_kind=greedynms\nbeta_nms=0.6\nmax_delta=5\niou_thresh=0.213\n";
  const Network network =
      planned(detector_net(64) + normalized(16, 3, 2, leaky) +
              section("route", "layers=-1\ngroups=2\ngroup_id=1") + normalized(8, 3, 1, leaky) +
              normalized(8, 3, 1, leaky) + section("route", "layers = -1,-2") +
              normalized(16, 1, 1, leaky) + section("route", "layers = -6,-1") +
              section("maxpool", "size=2\nstride=2") + normalized(24, 3, 1, leaky) +
              head("linear", v4) + section("route", "layers=-3") + normalized(12, 1, 1, leaky) +
              section("upsample", "stride=2") + section("route", "layers=-1, 6") +
              normalized(12, 3, 1, leaky) + head("linear", v4));
  CHECK(network.shape(1) == MapShape{8, 32, 32});
  CHECK(network.shape(6) == MapShape{32, 32, 32});
  CHECK(network.shape(10) == MapShape{21, 16, 16});
  CHECK(network.shape(14) == MapShape{44, 32, 32});
  CHECK(losses(network).size() == 2);
}

TEST_CASE("pools of several sizes side by side, and sums of layers") {
  const std::string mish = "mish";
  const Network network = planned(
      detector_net(48) + normalized(16, 3, 2, mish) + normalized(8, 1, 1, mish) +
      normalized(16, 3, 1, mish) + section("shortcut", "from=-3\nactivation=linear") +
      normalized(16, 3, 1, "hard_mish") + section("shortcut", "from=-2,-3\nactivation=leaky") +
      section("maxpool", "stride=1\nsize=5") + section("route", "layers=-2") +
      section("maxpool", "stride=1\nsize=9") + section("route", "layers=-4") +
      section("maxpool", "stride=1\nsize=13") + section("route", "layers=-1,-3,-5,-6") +
      normalized(16, 1, 1, mish) +
      head("logistic",
           "new_coords=1\nscale_x_y=2.0\nobjectness_smooth=1\niou_thresh=0.2\niou_normalizer=0.05\n"
           "cls_normalizer=0.5\nobj_normalizer=1.0\niou_loss=ciou\nnms_kind=diounms\nmax_delta="
           "2\n"));
  CHECK(network.layer(5).inputs == std::vector<int>{4, 3, 2});
  CHECK(network.shape(11) == MapShape{64, 24, 24});
  CHECK(network.shape(14) == MapShape{21, 24, 24});
}

TEST_CASE(
    "squeeze and excitation, attention by place and by value, and sources of fewer channels") {
  const std::string swish = "swish";
  const std::string depthwise = section(
      "convolutional",
      "groups=24\nfilters=24\nsize=5\nstride=2\npad=1\nbatch_normalize=1\nactivation=swish");
  const Network network = planned(
      detector_net(64) + normalized(16, 3, 2, swish) + normalized(24, 1, 1, swish) + depthwise +
      "[avgpool]\n" + section("convolutional", "filters=6\nsize=1\nactivation=swish") +
      section("convolutional", "filters=24\nsize=1\nactivation=logistic") +
      section("scale_channels", "from=-4") + normalized(16, 1, 1, "linear") +
      section("dropout", "probability=.0") + normalized(16, 1, 1, "logistic") +
      section("sam", "from=-3") + normalized(24, 3, 1, "gelu") +
      section("shortcut", "from=-2\nactivation=leaky") +
      section("convolutional", "filters=1\nsize=1\nactivation=logistic") +
      section("scale_channels", "from=-2\nscale_wh=1") + head("linear", "iou_loss=mse\n"));
  CHECK(network.shape(5) == MapShape{24, 1, 1});
  CHECK(network.shape(6) == MapShape{24, 16, 16});
  CHECK(network.shape(10) == MapShape{16, 16, 16});
  CHECK(network.shape(12) == MapShape{24, 16, 16});
  CHECK(network.shape(14) == MapShape{24, 16, 16});
}

}  // namespace tessera::partitioner
