#include "engine/session/prediction.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>

#include "engine/comm/texts_of_ranks.h"
#include "engine/data/batch/box_placement.h"
#include "engine/data/named_pictures.h"
#include "engine/data/text/class_names.h"
#include "engine/session/data_setup.h"
#include "engine/session/model_setup.h"
#include "engine/session/planning.h"
#include "engine/train/classification_report.h"
#include "engine/train/metrics/detection_metrics.h"
#include "partitioner/base/printable.h"
#include "partitioner/network/losses.h"

namespace tessera::engine {

namespace {

constexpr Index kPredictionBatch = 8;  // images looked at together, where there are as many

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

PredictionRequest with_files(PredictionRequest request, const Communicator& communicator) {
  request.weights = weights_file(request.weights, communicator);
  request.model = model_or_that_of(request.weights, request.model);
  return request;
}

// Set by set, and a batch at a time. All ranks go through the same sets.
class PredictionRun {
 public:
  PredictionRun(const PredictionRequest& request,
                const Communicator& communicator,
                const PredictionObserver& observer)
      : request_(with_files(request, communicator)),
        communicator_(communicator),
        observer_(observer),
        names_(agreed(communicator, [&] {
          return request.names.empty() ? std::vector<std::string>()
                                       : read_class_names(request.names);
        })) {}

  void run() {
    partitioner::ModelFile model = load_model(request_.model, communicator_, observer_.messages);
    NamedPictures pictures = open_named_pictures(request_.pictures, model.network.image.channels);
    const DataNeeds needs = needs_of(pictures, rendering_rules(model));
    const Index batch = batch_for(pictures);
    const partitioner::Partition partition =
        agreed_partition(model.network,
                         request_.partition,
                         {.model = request_.model,
                          .batch = batch,
                          .training = false,
                          .decoding_bytes = needs.decoding_bytes,
                          .data_bytes = needs.data_bytes},
                         communicator_,
                         observer_.messages);
    warn_of_idle_ranks(partition, communicator_, observer_.messages);
    Inference inference(
        std::move(model), request_.model, request_.weights, partition, batch, communicator_);
    warn_of_other_network(request_.weights, inference.model(), communicator_, observer_.messages);
    choose_names(inference);
    look_at_heads(inference);
    if (observer_.begin) {
      observer_.begin({inference.model(),
                       request_.weights,
                       names_,
                       heads_,
                       inference.execution().plan().reader.reads(0)});
    }
    total_ = of_reader(pictures.size() + std::ssize(pictures.problems), inference);
    say_problems(pictures, inference);
    const Index sets = of_reader(std::ssize(pictures.sets), inference);
    const RenderingRules rules = rules_for_weights(request_.weights,
                                                   inference.stored(),
                                                   inference.model(),
                                                   {request_.mean, request_.stddev},
                                                   communicator_,
                                                   observer_.messages);
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
    on_root(communicator_, [&] {
      if (observer_.end) {
        observer_.end();
      }
    });
    expect_all_read();
  }

 private:
  // The needs of all sets, one after the other; none where no search asks for them.
  [[nodiscard]] DataNeeds needs_of(const NamedPictures& pictures,
                                   const RenderingRules& rules) const {
    const auto reads = reads_before_search(request_.partition, communicator_);
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
    return std::min(most, request_.batch > 0 ? request_.batch : kPredictionBatch);
  }

  // The number of the first rank that reads pictures.
  [[nodiscard]] Index of_reader(Index mine, Inference& inference) const {
    const int reader = inference.execution().plan().reader.first_rank();
    return communicator_.of_ranks(mine)[static_cast<std::size_t>(reader)];
  }

  // The names of --names, else those that the weights' file keeps.
  void choose_names(const Inference& inference) {
    if (request_.names.empty()) {
      names_ = inference.class_names();
      return;
    }
    const partitioner::Network& network = inference.model().network;
    const Index outputs = classes_of(network, output_layer(network));
    if (std::ssize(names_) != outputs) {
      observer_.messages.warn(
          fmt::format("{} names {}, the network has {} outputs: {}",
                      printable(request_.names),
                      names_.size() == 1 ? "1 class" : fmt::format("{} classes", names_.size()),
                      outputs,
                      std::ssize(names_) < outputs ? "the others are shown by number"
                                                   : "does it belong to another model?"),
          communicator_);
    }
  }

  // What a detector needs of all pictures.
  void look_at_heads(const Inference& inference) {
    const partitioner::Network& network = inference.model().network;
    if (!is_detector(network)) {
      return;
    }
    for (const int layer : output_layers(network)) {
      heads_.push_back(head_site(network, layer));
    }
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
      observer_.messages.warn(text, communicator_);
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
            show(loader.source(), step * batch + position, of_image(outputs, position, batch));
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
  void show(const BatchSource* source,
            Index item,
            const std::vector<std::span<const float>>& outputs) const {
    const Dataset* set = source != nullptr ? &source->dataset() : nullptr;
    if (!observer_.picture) {
      return;
    }
    observer_.picture(
        {set != nullptr ? set->name(item) : fmt::format("picture {}", pictures_before_ + item),
         outputs,
         set,
         item});
  }

  // What is wrong with the only picture ends the command; of several it is said, and counted.
  void add_unreadable(const std::string& problem) {
    if (total_ == 1) {
      throw AgreedError(problem);
    }
    ++unreadable_;
    observer_.messages.warn(problem, communicator_);
  }

  void expect_all_read() const {
    if (unreadable_ > 0) {
      throw AgreedError(fmt::format("{} of {} pictures could not be read", unreadable_, total_));
    }
  }

  const PredictionRequest request_;
  const Communicator& communicator_;
  const PredictionObserver& observer_;
  std::vector<std::string> names_;
  std::vector<HeadSite> heads_;  // of a detector
  Index total_ = 0;              // pictures, and names that lead to none
  Index pictures_before_ = 0;    // in the sets before
  Index unreadable_ = 0;
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

}  // namespace

void predict(const PredictionRequest& request,
             const Communicator& communicator,
             const PredictionObserver& observer) {
  PredictionRun(request, communicator, observer).run();
}

std::vector<FoundObject> found_objects(const std::vector<HeadSite>& heads,
                                       const std::vector<std::span<const float>>& outputs,
                                       double least_score,
                                       const std::vector<std::string>& names) {
  std::vector<FoundObject> objects;
  for (const Detection& found : detections(heads, outputs, {.least_score = least_score})) {
    objects.push_back({class_name(names, static_cast<std::size_t>(found.label)), found});
  }
  return objects;
}

std::optional<FoundObject> best_object(const std::vector<HeadSite>& heads,
                                       const std::vector<std::span<const float>>& outputs,
                                       const std::vector<std::string>& names) {
  std::vector<Detection> found;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    add_boxes_of_head(heads[i], outputs[i], kLeastTestedScore, found);
  }
  const auto best = std::max_element(
      found.begin(), found.end(), [](const auto& a, const auto& b) { return a.score < b.score; });
  return best == found.end()
             ? std::nullopt
             : std::optional<FoundObject>(
                   {class_name(names, static_cast<std::size_t>(best->label)), *best});
}

void place_on_picture(std::vector<FoundObject>& objects,
                      const partitioner::MapShape& picture,
                      const RenderingRules& rules) {
  for (FoundObject& object : objects) {
    object.box = box_on_picture(object.box, whole_picture(rules, picture), picture, rules);
  }
}

std::vector<LabelledBox> labelled_boxes(const std::vector<FoundObject>& objects) {
  // Easy to tell apart, also for people who do not see red or green (Okabe and Ito 2008).
  static constexpr std::array<Colour, 7> kColours{{{230, 159, 0},
                                                   {86, 180, 233},
                                                   {0, 158, 115},
                                                   {240, 228, 66},
                                                   {0, 114, 178},
                                                   {213, 94, 0},
                                                   {204, 121, 167}}};
  std::vector<LabelledBox> boxes;
  for (auto object = objects.rbegin(); object != objects.rend(); ++object) {
    const UnitBox& box = object->box;
    boxes.push_back({box.x - box.width / 2,
                     box.y - box.height / 2,
                     box.x + box.width / 2,
                     box.y + box.height / 2,
                     fmt::format("{} {:.0f} %", object->name, 100 * object->score),
                     kColours[static_cast<std::size_t>(object->label) % kColours.size()]});
  }
  return boxes;
}

}  // namespace tessera::engine
