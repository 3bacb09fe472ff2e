#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "engine/cli/commands.h"
#include "engine/cli/drawn_pictures.h"
#include "engine/cli/found_objects.h"
#include "engine/cli/messages.h"
#include "engine/data/pictures/captioned_picture.h"
#include "engine/drawing/text.h"
#include "engine/run_files/names.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/classification_report.h"
#include "engine/train/metrics/detection_metrics.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

namespace {

// The classes of the largest outputs, the largest first.
std::vector<std::size_t> top_classes(std::span<const float> output, Index count) {
  std::vector<std::size_t> order(output.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return output[a] > output[b];
  });
  order.resize(std::min(order.size(), static_cast<std::size_t>(count)));
  return order;
}

// Prints and draws what is on pictures; rank 0's but for open().
class PredictOutput {
 public:
  explicit PredictOutput(const PredictCommand& command) : command_(command) {}

  // On every rank.
  void open(const Predictor& predictor, const Communicator& communicator) {
    weights_ = predictor.weights;
    names_ = predictor.names;
    heads_ = predictor.heads;
    rules_ = rendering_rules(predictor.model);
    const bool letter_box = !heads_.empty() && rules_.augmentation.letter_box;
    if (letter_box && !predictor.root_reads) {
      throw AgreedError(
          "letter_box: rank 0 says where boxes lie on a picture, so it must read them: use "
          "--reader 0 or --reader every");
    }
    if (command_.out.empty()) {
      return;
    }
    if (!predictor.root_reads) {
      throw AgreedError(
          "--out: rank 0 draws the pictures, so it must read them: use --reader 0 or "
          "--reader every");
    }
    on_root(communicator, [&] {
      drawn_.emplace(command_.out);
      if (!font_problem().empty()) {
        print_warning(
            fmt::format("--out: names are drawn in plain ASCII letters: {}", font_problem()));
      }
    });
  }

  void show(const PredictedPicture& picture) {
    if (heads_.empty()) {
      show_class(picture);
    } else {
      show_objects(picture);
    }
  }

  void say_if_nothing_was_found() const {
    if (any_found_ || empty_pictures_ == 0) {
      return;
    }
    print_warning(fmt::format("nothing was found on {} with a score of {} or more: {}{}",
                              counted(empty_pictures_, "picture"),
                              command_.least_score,
                              best_ ? fmt::format("the highest score is {:.4f}, of {} on {}",
                                                  best_->score,
                                                  best_->name,
                                                  best_picture_)
                                    : fmt::format("no score is as high as {}", kLeastTestedScore),
                              threshold_hint()));
  }

 private:
  void show_class(const PredictedPicture& picture) {
    const std::span<const float> output = picture.outputs.front();
    const std::vector<std::size_t> classes = top_classes(output, command_.top);
    std::string drawn;
    if (drawn_) {
      const std::string name = class_name(names_, classes.front());
      const double percent = 100 * static_cast<double>(output[classes.front()]);
      const auto [png, unknown] =
          captioned_picture(picture.read(kDrawnDetail), fmt::format("{}  {:.1f} %", name, percent));
      drawn = drawn_->add(picture.name, png);
      if (unknown > 0 && font_problem().empty() && !warned_of_characters_) {
        warned_of_characters_ = true;
        print_warning(
            fmt::format("--out: no font on this machine has all characters of '{}': install one "
                        "that does, such as fonts-noto-cjk or fonts-noto-core",
                        printable(name)));
      }
    }
    print(picture.name, classes, output, drawn);
  }

  void show_objects(const PredictedPicture& picture) {
    std::vector<FoundObject> objects =
        found_objects(heads_, picture.outputs, command_.least_score, names_);
    std::optional<FoundObject> best;
    if (objects.empty()) {
      best = best_object(heads_, picture.outputs, names_);
      ++empty_pictures_;
      if (best && (!best_ || best->score > best_->score)) {
        best_ = best;
        best_picture_ = picture.name;
      }
    } else {
      any_found_ = true;
    }
    std::string drawn;
    if (drawn_ ||
        rules_.augmentation.letter_box) {  // else fractions of the input are those of the picture
      const Picture read = picture.read(kDrawnDetail);
      place_on_picture(objects, read.shape, rules_);
      if (drawn_) {
        drawn = drawn_->add(picture.name, boxed_picture(read, labelled_boxes(objects)));
      }
    }
    fmt::print("{}",
               command_.json ? objects_json(picture.name, objects, best, drawn)
                             : objects_text(picture.name, objects, best, drawn));
  }

  // Of the weights, or of the best ones of their run.
  [[nodiscard]] std::string threshold_hint() const {
    for (const auto& file : {weights_, weights_.parent_path() / run_file::kBest}) {
      if (const auto best = stored_best_f1(file)) {
        return fmt::format(
            "; in the test of {} the highest F1, {:.1f} %, was at a score of {:.2f}{}",
            file.string(),
            100 * best->f1,
            best->score,
            best->score < command_.least_score
                ? fmt::format(": try --threshold {}", std::max(best->score, kLeastTestedScore))
                : "");
      }
    }
    return "; --threshold sets it, and `eval` says at which score F1 is highest";
  }

  void print(const std::string& picture,
             const std::vector<std::size_t>& classes,
             std::span<const float> output,
             const std::string& drawn) const {
    if (command_.json) {
      nlohmann::ordered_json json{{"picture", picture},
                                  {"predictions", nlohmann::ordered_json::array()}};
      for (const std::size_t i : classes) {
        json["predictions"].push_back(
            {{"class", i}, {"name", class_name(names_, i)}, {"value", output[i]}});
      }
      if (!drawn.empty()) {
        json["drawn"] = drawn;
      }
      fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
      return;
    }
    fmt::print("{}\n", printable(picture));
    for (const std::size_t i : classes) {
      fmt::print("  {:6.2f} %  {}\n",
                 100 * static_cast<double>(output[i]),
                 printable(class_name(names_, i)));
    }
    fmt::print("{}", drawn_line(drawn));
  }

  const PredictCommand& command_;
  std::filesystem::path weights_;
  std::vector<std::string> names_;
  std::vector<HeadSite> heads_;  // of a detector
  RenderingRules rules_;
  std::optional<DrawnPictures> drawn_;
  bool warned_of_characters_ = false;
  bool any_found_ = false;           // objects
  Index empty_pictures_ = 0;         // without objects
  std::optional<FoundObject> best_;  // on these
  std::string best_picture_;
};

}  // namespace

void run_predict(const PredictCommand& command, const Communicator& communicator) {
  PredictOutput output(command);
  PredictionObserver observer{printed_messages(), {}, {}, {}};
  observer.begin = [&](const Predictor& predictor) { output.open(predictor, communicator); };
  observer.picture = [&](const PredictedPicture& picture) { output.show(picture); };
  observer.end = [&] { output.say_if_nothing_was_found(); };
  predict(command, communicator, observer);
}

}  // namespace tessera::engine
