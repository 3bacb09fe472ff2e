// What a model file says of training, by name.

#include "engine/train/checkpoints/training_settings.h"

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::TrainingSettings;

// `net`: lines for [net]; `layers`: sections behind the first two.
TrainingSettings settings_of(const std::string& net, const std::string& layers) {
  const auto model = partitioner::parse_model(
      "[net]\nheight=8\nwidth=8\nchannels=3\n" + net +
          "[convolutional]\nfilters=4\n[convolutional]\nfilters=4\n" + layers,
      "m.cfg");
  return engine::training_settings(model.training, model.augmentation, model.network);
}

struct Change {
  const char* around = "";  // in [net], with which the key has an effect
  const char* line = "";    // that is added to it
};

constexpr Change kChanges[] = {{"", "learning_rate=0.5"},
                               {"", "burn_in=7"},
                               {"", "policy=exp"},
                               {"policy=poly\n", "power=3"},
                               {"burn_in=5\n", "power=3"},
                               {"policy=exp\n", "gamma=0.9"},
                               {"policy=sigmoid\n", "gamma=0.9"},
                               {"policy=sigmoid\n", "step=9"},
                               {"policy=step\n", "step=9"},
                               {"policy=step\n", "scale=0.1"},
                               {"policy=cosine\n", "learning_rate_min=0.0001"},
                               {"", "policy=steps\nsteps=1,2\nscales=3,4"},
                               {"", "policy=yolox"},
                               {"policy=yolox\n", "warmup_epochs=5"},
                               {"policy=yolox\n", "flat_epochs=5"},
                               {"", "momentum=0.5"},
                               {"", "nesterov=1"},
                               {"", "decay=0.5"},
                               {"", "adam=1"},
                               {"adam=1\n", "adamw=1"},
                               {"adam=1\n", "B1=0.5"},
                               {"adam=1\n", "B2=0.5"},
                               {"adam=1\n", "eps=0.5"},
                               {"", "ema_decay=0.9998"},
                               {"", "max_gradient_norm=10"},
                               {"", "ema_alpha=0.9998"},
                               {"", "batch_norm_rate=0.5"},
                               {"", "batch_norm_epsilon=0.5"},
                               {"batch_norm_rate=0.2\n", "batch_norm_rule=darknet"},
                               {"", "flip=0"},
                               {"", "angle=5"},
                               {"", "aspect=2"},
                               {"", "saturation=2"},
                               {"", "exposure=2"},
                               {"", "hue=0.2"},
                               {"", "min_crop=8"},
                               {"", "max_crop=30"},
                               {"", "crop_padding=2"}};

}  // namespace

TEST_CASE("each key of [net] that changes what is learnt changes the settings") {
  for (const Change& change : kChanges) {
    CAPTURE(change.around);
    CAPTURE(change.line);
    CHECK(settings_of(change.around, "") !=
          settings_of(std::string(change.around) + change.line + "\n", ""));
  }
}

TEST_CASE(
    "either rule of batch normalisation is a setting, so that a change from one is reported") {
  CHECK(settings_of("", "").at("batch_norm_rule") == "pytorch");
  CHECK(settings_of("batch_norm_rule=darknet\n", "").at("batch_norm_rule") == "darknet");
}

TEST_CASE("what has no effect beside other keys is no setting") {
  CHECK(settings_of("", "") ==
        settings_of("gamma=0.5\nB1=0.1\nscale=3\nbatch=8\nmax_batches=9\n", ""));
  CHECK(settings_of("adam=1\n", "") == settings_of("adam=1\nmomentum=0.3\n", ""));
}

TEST_CASE("numbers of layers that change what is learnt are settings") {
  const auto differ = [](const std::string& one, const std::string& other) {
    return settings_of("", one) != settings_of("", other);
  };
  CHECK(differ("[dropout]\n", "[dropout]\nprobability=0.25\n"));
  CHECK(differ("[softmax]\n", "[softmax]\ntemperature=2\n"));
  CHECK(differ("[cost]\n", "[cost]\nscale=2\n"));
  CHECK(differ("[shortcut]\nfrom=-2\n", "[shortcut]\nfrom=-2\nalpha=0.5\n"));
  CHECK(differ("[shortcut]\nfrom=-2\n", "[shortcut]\nfrom=-2\nbeta=0.5\n"));
  CHECK(differ("[upsample]\n", "[upsample]\nscale=2\n"));
  CHECK(settings_of("", "[dropout]\nprobability=0.25\n").at("probability of layer 2") == "0.25");
}
