#include "engine/session/model_adaptation.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <variant>

#include "engine/data/inspection/anchor_clusters.h"
#include "engine/session/class_outputs.h"
#include "engine/session/model_setup.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/shell_word.h"
#include "partitioner/cfg/cfg_edit.h"
#include "partitioner/cfg/cfg_sections.h"
#include "partitioner/cfg/model_file.h"
#include "partitioner/network/losses.h"
#include "partitioner/partition/partition.h"

namespace tessera::engine {

namespace {

using partitioner::Anchor;
using partitioner::CfgSection;
using partitioner::Network;

class Adaptation {
 public:
  explicit Adaptation(const AdaptationRequest& request)
      : request_(request),
        model_(partitioner::read_model(request.model)),
        sections_(partitioner::read_cfg_sections(model_.text, request.model)),
        data_(list_dataset(
            request.data,
            Split::Train,
            model_.network.image.channels,
            {.kind = target_kind(model_.network), .allow_unlabelled = request.allow_unlabelled})) {}

  [[nodiscard]] AdaptedModel adapted() {
    note_problems();
    set_size();
    const std::vector<partitioner::Loss> all = losses(model_.network);
    if (all.empty()) {
      throw InputError(request_.model, 0, "the network has no loss: nothing says what it learns");
    }
    for (const partitioner::Loss& loss : all) {
      if (loss.form == partitioner::LossForm::Boxes) {
        set_head(loss.layer);
      } else {
        set_outputs(loss.layer);
      }
    }
    if (is_detector(model_.network)) {
      set_anchors();
      set_length();
    }
    adapted_.text = with_changes(model_.text, changes_);
    (void)partitioner::parse_model(adapted_.text, "the changed " + request_.model);
    return std::move(adapted_);
  }

 private:
  [[nodiscard]] const CfgSection& section_of(int layer) const {
    return *std::find_if(sections_.begin(), sections_.end(), [&](const CfgSection& section) {
      return section.line == model_.network.layer(layer).line;
    });
  }

  static std::string value_in(const CfgSection& section, const std::string& key) {
    const auto found = std::find_if(section.entries.begin(),
                                    section.entries.end(),
                                    [&](const auto& entry) { return entry.key == key; });
    return found == section.entries.end() ? "" : found->value;
  }

  void set(const CfgSection& section, const std::string& key, const std::string& value) {
    const std::string before = value_in(section, key);
    if (before == value) {
      return;
    }
    changes_.push_back({section.line, key, value});
    adapted_.changes.push_back(
        value.empty()
            ? fmt::format("[{}] in line {}: {} is left out", section.name, section.line, key)
        : before.empty()
            ? fmt::format("[{}] in line {}: {}={}", section.name, section.line, key, value)
            : fmt::format("[{}] in line {}: {}={}, was {}",
                          section.name,
                          section.line,
                          key,
                          value,
                          before));
  }
  void set(const CfgSection& section, const std::string& key, Index value) {
    set(section, key, std::to_string(value));
  }

  void note_problems() {
    const auto problems = data_.problems();
    const auto unusable = std::count_if(problems.begin(), problems.end(), [](const auto& problem) {
      return is_error(problem.fault);
    });
    if (unusable >= data_.size()) {
      const DataProblem& first = problems.front();
      throw InputError(request_.data,
                       0,
                       fmt::format("no picture of it can be used: {}{}{}",
                                   first.where,
                                   first.where.empty() ? "" : ": ",
                                   first.what));
    }
    if (unusable > 0) {
      adapted_.notices.push_back(
          fmt::format("{}: {} of its pictures or boxes cannot be used: the others count (`tessera "
                      "check-data {}` lists them)",
                      request_.data,
                      unusable,
                      shell_word(request_.data)));
    }
  }

  void set_size() {
    if (request_.size.empty()) {
      return;
    }
    const auto [rows, cols] =
        partitioner::parse_grid(request_.size, "--size", partitioner::kPixels);
    if (model_.picture != model_.network.image) {
      throw InputError(request_.model,
                       model_.network.layer(0).line,
                       "--size: the input is the window of this [crop]; change it by hand");
    }
    model_.network = resized(model_.network, request_.size);
    set(sections_.front(), "height", rows);
    set(sections_.front(), "width", cols);
  }

  // The layer alone that gives what `reader` reads its channels gets so many.
  void set_channels(int layer, int reader, Index channels) {
    if (layer < 0) {
      throw InputError(
          request_.model,
          model_.network.layer(reader).line,
          fmt::format("[{}] needs other channels for {} classes, and no layer alone gives it "
                      "its channels: change the layers before it by hand",
                      section_of(reader).name,
                      data_.classes()));
    }
    const bool connected =
        std::holds_alternative<partitioner::Connected>(model_.network.layer(layer).operation);
    set(section_of(layer), connected ? "output" : "filters", channels);
  }

  void set_head(int layer) {
    const ClassLayer before = class_layer(model_.network, layer, data_.classes());
    set(section_of(layer), "classes", data_.classes());
    if (!value_in(section_of(layer), "counters_per_class").empty()) {
      set(section_of(layer), "counters_per_class", "");
    }
    set_channels(before.layer, layer, before.channels);
  }

  void set_outputs(int loss) {
    const partitioner::MapShape& shape = model_.network.shape(loss);
    if (shape.rows * shape.cols > 1) {
      throw InputError(
          request_.model,
          model_.network.layer(loss).line,
          fmt::format("the loss is over {}x{} cells of a class: an [avgpool] is missing before it",
                      shape.rows,
                      shape.cols));
    }
    if (shape.channels != data_.classes()) {
      set_channels(layer_of_channels(model_.network, loss), loss, data_.classes());
    }
  }

  // Heads that share a list of anchors get one that is clustered for all of them.
  void set_anchors() {
    std::vector<int> heads;
    Index count = 0;
    Index stride = 1;
    for (const int layer : output_layers(model_.network)) {
      const auto& operation = model_.network.layer(layer).operation;
      if (const auto* yolo = std::get_if<partitioner::YoloHead>(&operation)) {
        count = std::ssize(yolo->anchors);
      } else if (const auto* region = std::get_if<partitioner::RegionHead>(&operation)) {
        count = std::ssize(region->anchors);
        stride = model_.network.image.cols / model_.network.shape(layer).cols;
      } else {
        continue;
      }
      heads.push_back(layer);
    }
    const auto anchors_of = [&](int layer) { return value_in(section_of(layer), "anchors"); };
    if (heads.empty() || request_.keep_anchors) {
      return;
    }
    if (std::any_of(heads.begin(), heads.end(), [&](int layer) {
          return anchors_of(layer) != anchors_of(heads.front());
        })) {
      adapted_.notices.emplace_back(
          "the heads have lists of anchors of their own, which are left as they are");
      return;
    }
    const partitioner::MapShape& image = model_.network.image;
    const std::vector<BoxSides> sizes = box_sizes(data_, image.rows, image.cols);
    if (different_sizes(sizes) < count) {
      adapted_.notices.push_back(
          fmt::format("boxes of {} different sizes are too few for {} anchors, which are left as "
                      "they are",
                      different_sizes(sizes),
                      count));
      return;
    }
    const std::string text =
        anchors_text(anchors_as_written(cluster_anchors(sizes, count), stride), stride);
    for (const int layer : heads) {
      set(section_of(layer), "anchors", text);
    }
  }

  // Bochkovskiy's rule, see models/detectors.md.
  void set_length() {
    constexpr Index kOfClass = 2000;
    constexpr Index kLeast = 6000;
    const CfgSection& net = sections_.front();
    const Index steps = std::max({kOfClass * data_.classes(), data_.size(), kLeast});
    set(net, "max_batches", steps);
    if (model_.training.policy == partitioner::RatePolicy::Steps) {
      set(net, "steps", fmt::format("{},{}", steps * 8 / 10, steps * 9 / 10));
      if (model_.training.scales != std::vector<double>{0.1, 0.1}) {
        set(net, "scales", ".1,.1");
      }
    }
  }

  const AdaptationRequest& request_;
  partitioner::ModelFile model_;
  std::vector<CfgSection> sections_;
  Dataset data_;
  std::vector<partitioner::CfgChange> changes_;
  AdaptedModel adapted_;
};

}  // namespace

AdaptedModel adapt_model(const AdaptationRequest& request) {
  return Adaptation(request).adapted();
}

}  // namespace tessera::engine
