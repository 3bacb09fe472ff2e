#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>

#include "engine/cli/commands.h"
#include "engine/cli/messages.h"
#include "engine/data/box_placement.h"
#include "engine/data/captioned_picture.h"
#include "engine/data/class_names.h"
#include "engine/data/named_pictures.h"
#include "engine/detection/detections.h"
#include "engine/drawing/text.h"
#include "engine/files/atomic_file.h"
#include "engine/session/data_setup.h"
#include "engine/session/model_setup.h"
#include "engine/session/planning.h"
#include "engine/train/classification_report.h"
#include "engine/train/inference.h"
#include "partitioner/base/printable.h"
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

// An object on a picture, with the name of its class.
struct FoundObject : Detection {
  FoundObject(std::string class_name, const Detection& found)
      : Detection(found), name(std::move(class_name)) {}
  std::string name;
};

UnitBox box_on_picture(const UnitBox& box,
                       const Augmentation& augmentation,
                       const partitioner::MapShape& picture,
                       const RenderingRules& rules) {
  const auto place = [&](double x, double y) {
    return place_on_picture({x, y}, augmentation, picture, rules);
  };
  const PicturePlace from = place(box.x - box.width / 2, box.y - box.height / 2);
  const PicturePlace to = place(box.x + box.width / 2, box.y + box.height / 2);
  return {(from.x + to.x) / 2, (from.y + to.y) / 2, to.x - from.x, to.y - from.y};
}

// Files for pictures to look at: each has a name of its own, whatever folder its picture came from.
class DrawnPictures {
 public:
  explicit DrawnPictures(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    const bool there = !error && std::filesystem::is_directory(folder_, error);
    if (!there || error) {
      throw InputError(fmt::format("--out {}: cannot create this folder: choose a writable one",
                                   folder_.string()));
    }
    if (!std::filesystem::is_empty(folder_, error) || error) {
      throw InputError(
          fmt::format("--out {}: this folder is not empty: give a new one, so that no "
                      "picture is overwritten",
                      folder_.string()));
    }
  }

  // Returns whether all of the caption could be drawn.
  bool add(const std::string& name, const Picture& picture, const std::string& caption) {
    const auto [png, unknown] = captioned_picture(picture, caption);
    add(name, png);
    return unknown == 0;
  }

  void add(const std::string& name, const std::vector<std::byte>& png) {
    write_atomically(folder_ / (free_name(std::filesystem::path(name).stem().string()) + ".png"),
                     {reinterpret_cast<const char*>(png.data()), png.size()});
  }

 private:
  std::string free_name(const std::string& stem) {
    std::string name = stem;
    for (int number = 2; !taken_.insert(name).second; ++number) {
      name = fmt::format("{}-{}", stem, number);
    }
    return name;
  }

  std::filesystem::path folder_;
  std::set<std::string> taken_;
};

// The problems of all ranks, by position in the batch; one where several ranks have one. All ranks
// call this together.
std::map<Index, std::string> unreadable_anywhere(const std::vector<UnreadablePicture>& mine,
                                                 const Communicator& communicator) {
  std::vector<std::byte> packed;
  for (const UnreadablePicture& picture : mine) {
    const Index size = std::ssize(picture.problem);
    for (const Index number : {picture.position, size}) {
      const auto bytes = bytes_of(&number, 1);
      packed.insert(packed.end(), bytes.begin(), bytes.end());
    }
    const auto text = bytes_of(picture.problem.data(), size);
    packed.insert(packed.end(), text.begin(), text.end());
  }
  std::map<Index, std::string> problems;
  for (const auto& theirs : communicator.gather_all(packed)) {
    for (std::size_t at = 0; at < theirs.size();) {
      std::array<Index, 2> numbers{};
      std::memcpy(numbers.data(), theirs.data() + at, sizeof(numbers));
      at += sizeof(numbers);
      const auto size = static_cast<std::size_t>(numbers[1]);
      problems.emplace(numbers[0],
                       std::string(reinterpret_cast<const char*>(theirs.data() + at), size));
      at += size;
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
    print(picture, classes, output);
    if (drawn_) {
      const std::string name = class_name(names_, classes.front());
      const double percent = 100 * static_cast<double>(output[classes.front()]);
      const bool complete = drawn_->add(picture,
                                        source->dataset().read(item, kDrawnDetail),
                                        fmt::format("{}  {:.1f} %", name, percent));
      if (!complete && font_problem().empty() && !warned_of_characters_) {
        warned_of_characters_ = true;
        messages_.warn(fmt::format("--out: no font on this machine has all characters of '{}': "
                                   "install one that does, such as fonts-noto-cjk or "
                                   "fonts-noto-core",
                                   printable(name)),
                       communicator_);
      }
    }
  }

  void show_objects(const partitioner::ModelFile& model,
                    const std::string& picture,
                    const BatchSource* source,
                    Index item,
                    const std::vector<std::span<const float>>& outputs) {
    std::vector<FoundObject> objects;
    for (const Detection& found :
         detections(heads_, outputs, {.least_score = command_.least_score})) {
      objects.push_back({class_name(names_, static_cast<std::size_t>(found.label)), found});
    }
    const RenderingRules rules = rendering_rules(model);
    if (drawn_ ||
        rules.augmentation.letter_box) {  // else fractions of the input are those of the picture
      const Picture read = source->dataset().read(item, kDrawnDetail);
      for (FoundObject& object : objects) {
        object.box =
            box_on_picture(object.box, whole_picture(rules, read.shape), read.shape, rules);
      }
      if (drawn_) {
        drawn_->add(picture, boxed_picture(read, labelled(objects)));
      }
    }
    print_objects(picture, objects);
  }

  static std::vector<LabelledBox> labelled(const std::vector<FoundObject>& objects) {
    // Easy to tell apart, also for people who do not see red or green (Okabe and Ito 2008).
    static constexpr std::array<Colour, 7> kColours{{{230, 159, 0},
                                                     {86, 180, 233},
                                                     {0, 158, 115},
                                                     {240, 228, 66},
                                                     {0, 114, 178},
                                                     {213, 94, 0},
                                                     {204, 121, 167}}};
    std::vector<LabelledBox> boxes;
    for (auto found = objects.rbegin(); found != objects.rend(); ++found) {  // the best on top
      const FoundObject& object = *found;
      const UnitBox& box = object.box;
      boxes.push_back({box.x - box.width / 2,
                       box.y - box.height / 2,
                       box.x + box.width / 2,
                       box.y + box.height / 2,
                       fmt::format("{} {:.0f} %", object.name, 100 * object.score),
                       kColours[static_cast<std::size_t>(object.label) % kColours.size()]});
    }
    return boxes;
  }

  // As Darknet's label texts have it: class, centre, width and height in fractions of the picture.
  void print_objects(const std::string& picture, const std::vector<FoundObject>& objects) const {
    if (command_.json) {
      nlohmann::ordered_json json{{"picture", picture},
                                  {"objects", nlohmann::ordered_json::array()}};
      for (const FoundObject& object : objects) {
        json["objects"].push_back(
            {{"class", object.label},
             {"name", object.name},
             {"score", object.score},
             {"box", {object.box.x, object.box.y, object.box.width, object.box.height}}});
      }
      fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
      return;
    }
    fmt::print("{}\n", printable(picture));
    for (const FoundObject& object : objects) {
      fmt::print("  {:6.2f} %  {}  {} {:.4f} {:.4f} {:.4f} {:.4f}\n",
                 100 * object.score,
                 printable(object.name),
                 object.label,
                 object.box.x,
                 object.box.y,
                 object.box.width,
                 object.box.height);
    }
  }

  void print(const std::string& picture,
             const std::vector<std::size_t>& classes,
             std::span<const float> output) const {
    if (command_.json) {
      nlohmann::ordered_json json{{"picture", picture},
                                  {"predictions", nlohmann::ordered_json::array()}};
      for (const std::size_t i : classes) {
        json["predictions"].push_back(
            {{"class", i}, {"name", class_name(names_, i)}, {"value", output[i]}});
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
  Index total_ = 0;            // pictures, and names that lead to none
  Index pictures_before_ = 0;  // in the sets before
  Index unreadable_ = 0;
};

}  // namespace

void run_predict(const PredictCommand& command, const Communicator& communicator) {
  PredictRun(command, communicator).run();
}

}  // namespace tessera::engine
