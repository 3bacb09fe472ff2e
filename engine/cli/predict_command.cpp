#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "engine/cli/commands.h"
#include "engine/cli/drawn_pictures.h"
#include "engine/cli/found_objects.h"
#include "engine/cli/messages.h"
#include "engine/comm/texts_of_ranks.h"
#include "engine/data/captioned_picture.h"
#include "engine/data/class_names.h"
#include "engine/data/named_pictures.h"
#include "engine/drawing/text.h"
#include "engine/run_files/names.h"
#include "engine/session/data_setup.h"
#include "engine/session/model_setup.h"
#include "engine/session/planning.h"
#include "engine/train/checkpoint.h"
#include "engine/train/classification_report.h"
#include "engine/train/inference.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"
#include "partitioner/network/losses.h"

namespace tessera::engine {

namespace {

constexpr Index kPredictionBatch = 8;  // images looked at together, where there are as many

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

// The problems of all ranks, by position in the batch; one where several ranks have one. All ranks
// call this together.
std::map<Index, std::string> unreadable_anywhere(const std::vector<UnreadablePicture>& mine,
                                                 const Communicator& communicator) {
  std::vector<std::string> texts;
  for (const UnreadablePicture& picture : mine) {
    texts.insert(texts.end(), {std::to_string(picture.position), picture.problem});
  }
  std::map<Index, std::string> problems;
  for (const std::vector<std::string>& theirs : lists_of_ranks(communicator, texts)) {
    for (std::size_t i = 0; i < theirs.size(); i += 2) {
      problems.emplace(std::stoll(theirs[i]), theirs[i + 1]);
    }
  }
  return problems;
}

// Says what is in pictures, set by set and a batch at a time. All ranks go through the same sets;
// rank 0 prints.
class PredictRun {
 public:
  PredictRun(const PredictCommand& command, const Communicator& communicator)
      : command_(command), communicator_(communicator), names_(agreed(communicator, [&] {
          return command.names.empty() ? std::vector<std::string>()
                                       : read_class_names(command.names);
        })) {}

  void run() {
    partitioner::ModelFile model = load_model(command_.model, communicator_, messages_);
    NamedPictures pictures = open_named_pictures(command_.pictures, model.network.image.channels);
    const DataNeeds needs = needs_of(pictures, rendering_rules(model));
    const Index batch = batch_for(pictures);
    const partitioner::Partition partition =
        agreed_partition(model.network,
                         command_.partition,
                         {.model = command_.model,
                          .batch = batch,
                          .training = false,
                          .decoding_bytes = needs.decoding_bytes,
                          .data_bytes = needs.data_bytes},
                         communicator_,
                         messages_);
    warn_of_idle_ranks(partition, communicator_, messages_);
    Inference inference(
        std::move(model), command_.model, command_.weights, partition, batch, communicator_);
    warn_of_other_outputs(command_.weights, inference.model(), communicator_, messages_);
    choose_names(inference);
    look_at_heads(inference);
    open_folder(inference);
    total_ = of_reader(pictures.size() + std::ssize(pictures.problems), inference);
    say_problems(pictures, inference);
    const Index sets = of_reader(std::ssize(pictures.sets), inference);
    const RenderingRules rules = rules_for_weights(command_.weights,
                                                   inference.stored(),
                                                   inference.model(),
                                                   {command_.mean, command_.stddev},
                                                   communicator_,
                                                   messages_);
    for (Index set = 0; set < sets; ++set) {
      expect_same_everywhere(
          inference.reads(),
          set < std::ssize(pictures.sets) ? &pictures.sets[static_cast<std::size_t>(set)] : nullptr,
          communicator_);
      BatchOptions options;
      options.rules = rules;
      options.passes_unreadable = true;
      DataLoader loader = inference.loader(
          options, [&] { return std::move(pictures.sets[static_cast<std::size_t>(set)]); });
      predict_set(inference, loader);
    }
    on_root(communicator_, [&] { say_if_nothing_was_found(); });
    expect_all_read();
  }

 private:
  // The needs of all sets, one after the other; none where no search asks for them.
  [[nodiscard]] DataNeeds needs_of(const NamedPictures& pictures,
                                   const RenderingRules& rules) const {
    const auto reads = reads_before_search(command_.partition, communicator_);
    if (!reads) {
      return {};
    }
    DataNeeds mine;
    Index decoding_bytes = 0;
    for (const Dataset& set : pictures.sets) {
      mine.decoding_bytes = 0;
      add_needs(set, rules, mine);
      decoding_bytes = std::max(decoding_bytes, mine.decoding_bytes);
    }
    mine.decoding_bytes = decoding_bytes;
    return most_needs(*reads ? mine : DataNeeds{}, communicator_);
  }

  // Which ranks read is not known before there is a partition: the others may find no pictures.
  [[nodiscard]] Index batch_for(const NamedPictures& pictures) const {
    Index most = 1;
    for (const Index size : communicator_.of_ranks(pictures.size())) {
      most = std::max(most, size);
    }
    return std::min(most, command_.batch > 0 ? command_.batch : kPredictionBatch);
  }

  // The number of the first rank that reads pictures.
  [[nodiscard]] Index of_reader(Index mine, Inference& inference) const {
    const int reader = inference.execution().plan().reader.first_rank();
    return communicator_.of_ranks(mine)[static_cast<std::size_t>(reader)];
  }

  // The names of --names, else those that the weights' file keeps.
  void choose_names(const Inference& inference) {
    if (command_.names.empty()) {
      names_ = inference.class_names();
      return;
    }
    const partitioner::Network& network = inference.model().network;
    const Index outputs = classes_of(network, output_layer(network));
    if (std::ssize(names_) != outputs) {
      messages_.warn(
          fmt::format("{} names {}, the network has {} outputs: {}",
                      printable(command_.names),
                      names_.size() == 1 ? "1 class" : fmt::format("{} classes", names_.size()),
                      outputs,
                      std::ssize(names_) < outputs ? "the others are shown by number"
                                                   : "does it belong to another model?"),
          communicator_);
    }
  }

  // What a detector needs of all pictures.
  void look_at_heads(Inference& inference) {
    const partitioner::ModelFile& model = inference.model();
    if (!is_detector(model.network)) {
      return;
    }
    for (const int layer : output_layers(model.network)) {
      heads_.push_back(head_site(model.network, layer));
    }
    if (model.augmentation.letter_box && !inference.execution().plan().reader.reads(0)) {
      throw AgreedError(
          "letter_box=1: rank 0 says where boxes lie on a picture, so it must read them: use "
          "--reader 0 or --reader every");
    }
  }

  void open_folder(Inference& inference) {
    if (command_.out.empty()) {
      return;
    }
    if (!inference.execution().plan().reader.reads(0)) {
      throw AgreedError(
          "--out: rank 0 draws the pictures, so it must read them: use --reader 0 or "
          "--reader every");
    }
    on_root(communicator_, [&] {
      drawn_.emplace(command_.out);
      if (!font_problem().empty()) {
        messages_.warn(
            fmt::format("--out: names are drawn in plain ASCII letters: {}", font_problem()),
            communicator_);
      }
    });
  }

  // Names that lead to no picture, and what is left out of folders.
  void say_problems(const NamedPictures& pictures, const Inference& inference) {
    const auto of_readers = [&](const std::vector<std::string>& texts) {
      std::vector<UnreadablePicture> mine;
      for (std::size_t i = 0; inference.reads() && i < texts.size(); ++i) {
        mine.push_back({static_cast<Index>(i), texts[i]});
      }
      return unreadable_anywhere(mine, communicator_);
    };
    for (const auto& [number, text] : of_readers(pictures.left_out)) {
      messages_.warn(text, communicator_);
    }
    for (const auto& [number, problem] : of_readers(pictures.problems)) {
      add_unreadable(problem);
    }
  }

  void predict_set(Inference& inference, DataLoader& loader) {
    const Index batch = inference.execution().plan().batch;
    const Index size = loader.size();
    for (Index step = 0; step * batch < size; ++step) {
      const Outputs outputs = inference.outputs(loader, step);
      const auto problems = unreadable_anywhere(loader.unreadable(), communicator_);
      for (const auto& [position, problem] : problems) {
        add_unreadable(problem);
      }
      on_root(communicator_, [&] {
        for (Index position = 0; position < std::min(batch, size - step * batch); ++position) {
          if (problems.count(position) == 0) {
            show(inference,
                 loader.source(),
                 step * batch + position,
                 of_image(outputs, position, batch));
          }
        }
      });
    }
    pictures_before_ += size;
  }

  static std::vector<std::span<const float>> of_image(const Outputs& outputs,
                                                      Index position,
                                                      Index batch) {
    std::vector<std::span<const float>> all;
    for (const std::vector<float>& layer : outputs) {
      const auto size = layer.size() / static_cast<std::size_t>(batch);
      all.push_back(std::span(layer).subspan(static_cast<std::size_t>(position) * size, size));
    }
    return all;
  }

  // On rank 0; `source` is null where another rank reads.
  void show(const Inference& inference,
            const BatchSource* source,
            Index item,
            const std::vector<std::span<const float>>& outputs) {
    const std::string picture = source != nullptr
                                    ? source->dataset().name(item)
                                    : fmt::format("picture {}", pictures_before_ + item);
    if (!heads_.empty()) {
      show_objects(inference.model(), picture, source, item, outputs);
    } else {
      show_class(picture, source, item, outputs.front());
    }
  }

  void show_class(const std::string& picture,
                  const BatchSource* source,
                  Index item,
                  std::span<const float> output) {
    const std::vector<std::size_t> classes = top_classes(output, command_.top);
    std::string drawn;
    if (drawn_) {
      const std::string name = class_name(names_, classes.front());
      const double percent = 100 * static_cast<double>(output[classes.front()]);
      const auto [png, unknown] = captioned_picture(source->dataset().read(item, kDrawnDetail),
                                                    fmt::format("{}  {:.1f} %", name, percent));
      drawn = drawn_->add(picture, png);
      if (unknown > 0 && font_problem().empty() && !warned_of_characters_) {
        warned_of_characters_ = true;
        messages_.warn(fmt::format("--out: no font on this machine has all characters of '{}': "
                                   "install one that does, such as fonts-noto-cjk or "
                                   "fonts-noto-core",
                                   printable(name)),
                       communicator_);
      }
    }
    print(picture, classes, output, drawn);
  }

  void show_objects(const partitioner::ModelFile& model,
                    const std::string& picture,
                    const BatchSource* source,
                    Index item,
                    const std::vector<std::span<const float>>& outputs) {
    std::vector<FoundObject> objects = found_objects(heads_, outputs, command_.least_score, names_);
    std::optional<FoundObject> best;
    if (objects.empty()) {
      best = best_object(heads_, outputs, names_);
      ++empty_pictures_;
      if (best && (!best_ || best->score > best_->score)) {
        best_ = best;
        best_picture_ = picture;
      }
    } else {
      any_found_ = true;
    }
    const RenderingRules rules = rendering_rules(model);
    std::string drawn;
    if (drawn_ ||
        rules.augmentation.letter_box) {  // else fractions of the input are those of the picture
      const Picture read = source->dataset().read(item, kDrawnDetail);
      place_on_picture(objects, read.shape, rules);
      if (drawn_) {
        drawn = drawn_->add(picture, boxed_picture(read, labelled_boxes(objects)));
      }
    }
    fmt::print("{}",
               command_.json ? objects_json(picture, objects, best, drawn)
                             : objects_text(picture, objects, best, drawn));
  }

  // Of the weights, or of the best ones of their run.
  [[nodiscard]] std::string threshold_hint() const {
    const std::filesystem::path weights = command_.weights;
    for (const auto& file : {weights, weights.parent_path() / run_file::kBest}) {
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

  void say_if_nothing_was_found() const {
    if (any_found_ || empty_pictures_ == 0) {
      return;
    }
    messages_.warn(fmt::format("nothing was found on {} with a score of {} or more: {}{}",
                               counted(empty_pictures_, "picture"),
                               command_.least_score,
                               best_ ? fmt::format("the highest score is {:.4f}, of {} on {}",
                                                   best_->score,
                                                   best_->name,
                                                   best_picture_)
                                     : fmt::format("no score is as high as {}", kLeastTestedScore),
                               threshold_hint()));
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

  // What is wrong with the only picture ends the command; of several it is said, and counted.
  void add_unreadable(const std::string& problem) {
    if (total_ == 1) {
      throw AgreedError(problem);
    }
    ++unreadable_;
    messages_.warn(problem, communicator_);
  }

  void expect_all_read() const {
    if (unreadable_ > 0) {
      throw AgreedError(fmt::format("{} of {} pictures could not be read", unreadable_, total_));
    }
  }

  const PredictCommand& command_;
  const Communicator& communicator_;
  const SessionObserver& messages_ = printed_messages();
  std::vector<std::string> names_;
  std::vector<HeadSite> heads_;         // of a detector
  std::optional<DrawnPictures> drawn_;  // rank 0
  bool warned_of_characters_ = false;
  bool any_found_ = false;           // objects; this and what follows are rank 0's
  Index empty_pictures_ = 0;         // without objects
  std::optional<FoundObject> best_;  // on these
  std::string best_picture_;
  Index total_ = 0;            // pictures, and names that lead to none
  Index pictures_before_ = 0;  // in the sets before
  Index unreadable_ = 0;
};

}  // namespace

void run_predict(const PredictCommand& command, const Communicator& communicator) {
  PredictRun(command, communicator).run();
}

}  // namespace tessera::engine
