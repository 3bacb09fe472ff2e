// What the heads of a detector without anchors make of raw values and boxes, against the original
// program: tests/golden/yolox.

#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/random_network.h"
#include <doctest/doctest.h>

#include "engine/train/verifying/vector_jacobian.h"
#include "partitioner/cfg/model_file.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::NamedTensor;
using engine::NamedTensors;

struct Scale {
  int head = 0;  // its layer
  Index stride = 1;
  Index rows = 0;
  Index cols = 0;
};

// Raw values reach the heads through pools of an image that has those of each scale in channels of
// their own, each as often as its cell has pixels.
class YoloxCase {
 public:
  explicit YoloxCase(const std::filesystem::path& path) : name_(path.filename().string()) {
    std::ifstream file(path);
    json_ = nlohmann::json::parse(file);
    classes_ = json_["classes"];
    batch_ = json_["batch"];
    const std::vector<Index> image = json_["image"];
    rows_ = image[0];
    cols_ = image[1];
    make_model();
    make_input();
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Index batch() const { return batch_; }
  [[nodiscard]] const partitioner::Network& network() const { return model_.network; }
  [[nodiscard]] const NamedTensors& input() const { return input_; }

  // The largest difference of what was found, by the largest value of its kind.
  [[nodiscard]] double worst(const NamedTensors& found) const {
    const auto& expected = json_["expected"];
    const double loss = expected["loss"]["total"];
    double most = std::abs(found.at("loss").values[0] - loss) / loss;
    double largest = 0;
    double difference = 0;
    for (std::size_t i = 0; i < scales_.size(); ++i) {
      const std::vector<double> slopes = expected["gradient"][i];
      const std::vector<double>& deltas = found.at(fmt::format("delta.{}", scales_[i].head)).values;
      for (std::size_t place = 0; place < slopes.size(); ++place) {
        largest = std::max(largest, std::abs(slopes[place]));
        difference = std::max({difference,
                               std::abs(slopes[place] + deltas[place]),
                               std::abs(slopes[place] - input_slope(found, i, place))});
      }
    }
    most = std::max(most, difference / largest);
    return most;
  }

  // Cells with an object, over all scales, of all pictures: those whose objectness is to grow.
  [[nodiscard]] bool has_assigned_as_expected(const NamedTensors& found) const {
    for (Index n = 0; n < batch_; ++n) {
      std::vector<Index> cells;
      Index first = 0;
      for (const Scale& scale : scales_) {
        const Index area = scale.rows * scale.cols;
        const auto& deltas = found.at(fmt::format("delta.{}", scale.head)).values;
        for (Index cell = 0; cell < area; ++cell) {
          if (deltas[static_cast<std::size_t>((n * (5 + classes_) + 4) * area + cell)] > 0) {
            cells.push_back(first + cell);
          }
        }
        first += area;
      }
      const auto& expected = json_["expected"]["foreground"][static_cast<std::size_t>(n)]["cells"];
      if (cells != expected.get<std::vector<Index>>()) {
        return false;
      }
    }
    return true;
  }

 private:
  void make_model() {
    const std::vector<Index> strides = json_["strides"];
    const auto count = std::ssize(strides);
    std::string text = fmt::format(
        "[net]\nchannels={}\nheight={}\nwidth={}\n", count * (5 + classes_), rows_, cols_);
    int layer = 0;
    Index before = 1;
    int pool = -1;
    for (Index i = 0; i < count; ++i) {
      if (pool >= 0) {
        text += fmt::format("[route]\nlayers={}\n", pool);
        ++layer;
      }
      const Index stride = strides[static_cast<std::size_t>(i)];
      text += fmt::format("[maxpool]\nsize={0}\nstride={0}\npadding=0\n", stride / before);
      pool = layer++;
      text += fmt::format("[route]\nlayers=-1\ngroups={}\ngroup_id={}\n", count, i);
      text += fmt::format(
          "[yolox]\nclasses={}\nl1={}\n", classes_, json_["use_l1"].get<bool>() ? 1 : 0);
      layer += 2;
      scales_.push_back({layer - 1, stride, rows_ / stride, cols_ / stride});
      before = stride;
    }
    model_ = partitioner::parse_model(text, name_);
  }

  [[nodiscard]] std::size_t pixel(Index n, Index channel, Index row, Index col) const {
    const Index channels = std::ssize(scales_) * (5 + classes_);
    return static_cast<std::size_t>(((n * channels + channel) * rows_ + row) * cols_ + col);
  }

  // Calls visit(place in the scale's list, n, channel of the image, row, col).
  template <class Visit>
  void for_each_value(std::size_t scale, Visit visit) const {
    const auto& [head, stride, rows, cols] = scales_[scale];
    std::size_t place = 0;
    for (Index n = 0; n < batch_; ++n) {
      for (Index c = 0; c < 5 + classes_; ++c) {
        for (Index row = 0; row < rows; ++row) {
          for (Index col = 0; col < cols; ++col) {
            visit(place++, n, static_cast<Index>(scale) * (5 + classes_) + c, row, col);
          }
        }
      }
    }
  }

  void make_input() {
    NamedTensor& image = input_["input"];
    image.shape = {batch_, std::ssize(scales_) * (5 + classes_), rows_, cols_};
    image.values.resize(pixel(batch_, 0, 0, 0));
    for (std::size_t i = 0; i < scales_.size(); ++i) {
      const std::vector<double> values = json_["outputs"][i];
      const Index stride = scales_[i].stride;
      for_each_value(i, [&](std::size_t place, Index n, Index channel, Index row, Index col) {
        for (Index y = 0; y < stride; ++y) {
          for (Index x = 0; x < stride; ++x) {
            image.values[pixel(n, channel, row * stride + y, col * stride + x)] = values[place];
          }
        }
      });
    }
    std::size_t most = 1;
    for (const auto& of_image : json_["labels"]) {
      most = std::max(most, of_image.size());
    }
    NamedTensor& boxes = input_["boxes"];
    boxes.shape = {batch_, static_cast<Index>(most), 5};
    for (const auto& of_image : json_["labels"]) {
      for (std::size_t i = 0; i < most; ++i) {
        std::vector<double> box = i < of_image.size() ? of_image[i].get<std::vector<double>>()
                                                      : std::vector<double>(5, -1);
        for (std::size_t number = 1; number < 5; ++number) {
          box[number] /= static_cast<double>(number % 2 == 1 ? cols_ : rows_);
        }
        boxes.values.insert(boxes.values.end(), box.begin(), box.end());
      }
    }
  }

  // The sum over the pixels of the cell.
  [[nodiscard]] double input_slope(const NamedTensors& found,
                                   std::size_t scale,
                                   std::size_t wanted) const {
    const auto& [head, stride, rows, cols] = scales_[scale];
    const auto place = static_cast<Index>(wanted);
    const Index col = place % cols;
    const Index row = place / cols % rows;
    const Index channel = place / cols / rows % (5 + classes_);
    const Index n = place / cols / rows / (5 + classes_);
    const std::vector<double>& slopes = found.at("input_gradient").values;
    double sum = 0;
    for (Index y = 0; y < stride; ++y) {
      for (Index x = 0; x < stride; ++x) {
        sum += slopes[pixel(n,
                            static_cast<Index>(scale) * (5 + classes_) + channel,
                            row * stride + y,
                            col * stride + x)];
      }
    }
    return sum;
  }

  std::string name_;
  nlohmann::json json_;
  Index classes_ = 0;
  Index batch_ = 0;
  Index rows_ = 0;
  Index cols_ = 0;
  std::vector<Scale> scales_;
  partitioner::ModelFile model_;
  NamedTensors input_;
};

std::vector<YoloxCase> golden_cases() {
  std::vector<YoloxCase> cases;
  const auto folder = std::filesystem::path(TESSERA_SOURCE_DIR) / "tests" / "golden" / "yolox";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    cases.emplace_back(entry.path());
  }
  return cases;
}

}  // namespace

TEST_CASE("objects, losses and slopes of [yolox] heads are those of YOLOX, however they are cut") {
  const Communicator world = Communicator::world();
  const std::vector<YoloxCase> cases = golden_cases();
  CHECK(cases.size() == 13);
  for (const YoloxCase& golden : cases) {
    tests::Draw draw(static_cast<std::uint64_t>(world.size()));
    for (int cut = 0; cut < 3; ++cut) {
      const partitioner::Partition partition =
          tests::random_partition(draw, golden.network(), golden.batch(), world.size());
      const engine::VectorJacobianOptions options{.network = golden.network(),
                                                  .partition = partition};
      const NamedTensors in_double =
          engine::vector_jacobian_product<double>(options, golden.input(), world);
      const NamedTensors in_single =
          engine::vector_jacobian_product<float>(options, golden.input(), world);
      if (world.rank() == 0) {
        CAPTURE(golden.name());
        CAPTURE(cut);
        CHECK(golden.has_assigned_as_expected(in_double));
        CHECK(golden.has_assigned_as_expected(in_single));
        CHECK(golden.worst(in_double) < 1e-9);
        const bool is_tiny = golden.name() == "smaller-than-a-cell.json";
        CHECK(golden.worst(in_single) < (is_tiny ? 1e-4 : 1e-5));
      }
    }
  }
}
