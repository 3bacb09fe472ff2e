#include "partitioner/cfg/model_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>

#include <doctest/doctest.h>

#include "partitioner/base/errors.h"
#include "partitioner/network/frozen_layers.h"

namespace tessera::partitioner {

namespace {

const std::string kNet = "[net]\nheight=8\nwidth=12\nchannels=3\n";  // lines 1 to 4

std::string models_folder() {
  return TESSERA_SOURCE_DIR "/models/";
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <typename Kind>
Kind only_layer(const std::string& section) {
  return std::get<Kind>(parse_model(kNet + section, "m.cfg").network.layer(0).operation);
}

MapShape last_shape(const std::string& sections) {
  const Network network = parse_model(kNet + sections, "m.cfg").network;
  return network.shape(network.size() - 1);
}

// `text` is refused, with `place` before the message and each word of `parts` somewhere in it.
void check_refused(const std::string& text,
                   const std::string& place,
                   const std::vector<std::string>& parts) {
  CAPTURE(text.substr(0, 200));
  try {
    const ModelFile model = parse_model(text, "m.cfg");
    FAIL_CHECK("accepted");
  } catch (const InputError& error) {
    const std::string message = error.what();
    CAPTURE(message);
    CHECK(message.rfind(place + ": ", 0) == 0);
    for (const std::string& part : parts) {
      CHECK_MESSAGE(message.find(part) != std::string::npos, part);
    }
  }
}

}  // namespace

TEST_CASE("every layer of Debian's classifiers and detectors has the shape that Darknet gives it") {
  const std::string folder = "/usr/share/darknet/cfg/";
  if (!std::filesystem::exists(folder)) {
    MESSAGE("not compared: the package darknet, which holds the files, is not installed");
    return;
  }
  std::ifstream golden(TESSERA_SOURCE_DIR "/tests/golden/darknet_shapes.txt");
  std::string line;
  std::getline(golden, line);  // what the columns are
  int files = 0;
  std::string name;
  for (int count = 0; golden >> name >> count; ++files) {
    CAPTURE(name);
    const ModelFile model = read_model(folder + name + ".cfg");
    // One of them has two keys twice.
    CHECK(model.warnings.size() == (name == "yolov3-openimages" ? 2 : 0));
    REQUIRE(model.network.size() == count);
    for (const LayerSpec& layer : model.network.layers) {
      int index = 0;
      std::string kind;
      MapShape shape;
      Index values = 0;
      golden >> index >> kind >> shape.channels >> shape.rows >> shape.cols >> values;
      CAPTURE(index);
      const bool has_word = !std::holds_alternative<Upsample>(layer.operation);
      CHECK(kind == (has_word ? kind_name(layer.operation) : "none"));
      CHECK(values == layer.output.volume());
      CHECK((shape == MapShape{} || shape == layer.output));
    }
  }
  CHECK(files == 31);
}

TEST_CASE("the models of this project are what their table says") {
  struct Row {
    const char* name;
    int layers;
    Index learnt;
  };
  for (const Row& row : {Row{"lenet5", 8, 61706},
                         Row{"fashion-resnet", 11, 70330},
                         Row{"yolov2-early", 16, 3424160},
                         Row{"yolov2-early-plain", 16, 3421568}}) {
    CAPTURE(row.name);
    const ModelFile model = read_model(models_folder() + row.name + ".cfg");
    CHECK(model.warnings.empty());
    CHECK(model.network.size() == row.layers);
    Index learnt = 0;
    for (int layer = 0; layer < model.network.size(); ++layer) {
      const LayerParameters parameters = layer_parameters(model.network, layer);
      for (const ParameterShape& shape : {parameters.weight, parameters.bias, parameters.scale}) {
        learnt += shape.channels * shape.row;
      }
    }
    CHECK(learnt == row.learnt);
  }
}

TEST_CASE("keys that are left out have Darknet's defaults") {
  const ModelFile model = parse_model(kNet + "[convolutional]\n", "m.cfg");
  CHECK(model.network.image == MapShape{3, 8, 12});
  CHECK(model.picture == model.network.image);
  CHECK(model.training.learning_rate == 0.001);
  CHECK(model.training.momentum == 0.9);
  CHECK(model.training.decay == 0.0001);
  CHECK(std::get<Convolution>(model.network.layer(0).operation) == Convolution{});
  CHECK(only_layer<MaxPool>("[maxpool]\nstride=3\n") == MaxPool{3, 3, 2});
  CHECK(only_layer<MaxPool>("[maxpool]\nsize=3\n") == MaxPool{3, 1, 2});
  CHECK(only_layer<Connected>("[connected]\n").activation == Activation::Logistic);
  CHECK(only_layer<Dropout>("[dropout]\n").probability == 0.5);
  CHECK(only_layer<Upsample>("[upsample]\n") == Upsample{});
  CHECK(only_layer<Upsample>("[upsample]\nmode=bilinear\n") == Upsample{.bilinear = true});
  CHECK(only_layer<Reorg>("[reorg]\n").stride == 1);
}

TEST_CASE("pad=1 overrides padding, and an even size then grows the map") {
  const std::string section = "[convolutional]\nsize=4\npadding=3\n";
  CHECK(only_layer<Convolution>(section).padding == 3);
  CHECK(only_layer<Convolution>(section + "pad=1\n").padding == 2);
  CHECK(last_shape(section + "pad=1\n") == MapShape{1, 9, 13});
}

TEST_CASE("rows and columns of a filter can have sizes, strides and padding of their own") {
  const std::string section = "[convolutional]\nsize=3\nsize_x=5\nstride=2\nstride_y=1\n";
  const auto own = only_layer<Convolution>(section + "padding_x=2\n");
  CHECK(own.size == PerAxis{3, 5});
  CHECK(own.stride == PerAxis{1, 2});
  CHECK(own.padding == PerAxis{0, 2});
  CHECK(only_layer<Convolution>(section + "pad=1\n").padding == PerAxis{1, 2});
  CHECK(last_shape(section + "pad=1\n") == MapShape{1, 8, 6});
  CHECK(only_layer<Convolution>("[conv]\nstride_x=2\n").stride == PerAxis{1, 2});
}

TEST_CASE("the padding below and on the right can be another than above and on the left") {
  const std::string section = "[convolutional]\nsize=3\nstride=2\npadding=1\n";
  CHECK(only_layer<Convolution>(section).padding_end() == 1);
  CHECK(only_layer<Convolution>(section + "padding_end=0\n").padding_end() == 0);
  CHECK(only_layer<Convolution>(section + "padding_end=2\npadding_end_x=0\n").padding_end() ==
        PerAxis{2, 0});
  CHECK(only_layer<Convolution>(section + "pad=1\npadding_y=0\npadding_end_y=0\n") ==
        Convolution{.size = 3, .stride = 2, .padding = 1, .more_padding = {-1, 0}});
  CHECK(last_shape("[conv]\nsize=3\nstride=2\npadding_end=1\n") == MapShape{1, 4, 6});
  check_refused(kNet + section + "padding_end=-1\n", "m.cfg:5", {"padding_end=-1"});
  check_refused(kNet + section + "dilation=2\npadding_end=2\n", "m.cfg:9", {"dilation=2"});
  CHECK(only_layer<MaxPool>("[max]\nsize=3\nstride=2\npadding_x=1\n") == MaxPool{3, 2, {2, 1}});
  CHECK(parse_model(kNet + "[max]\npadding_y=0\n", "m.cfg").warnings.empty());
}

TEST_CASE("transposed convolutions have the keys of convolutions, but for groups and dilation") {
  const std::string section =
      "[deconvolutional]\nfilters=5\nsize=4\nstride=2\npadding=1\nbatch_normalize=1\n"
      "activation=relu\n";
  CHECK(only_layer<Deconvolution>(section) == Deconvolution{.filters = 5,
                                                            .size = 4,
                                                            .stride = 2,
                                                            .padding = 1,
                                                            .batch_normalize = true,
                                                            .activation = Activation::Relu});
  CHECK(last_shape(section) == MapShape{5, 16, 24});
  CHECK(last_shape("[deconv]\nsize=3\nstride=2\npad=1\npadding_end=0\n") == MapShape{1, 16, 24});
  CHECK(parse_model(kNet + section, "m.cfg").warnings.empty());
  CHECK(parse_model(kNet + section + "groups=2\n", "m.cfg").warnings.size() == 1);
}

TEST_CASE("pools have strides of their own for rows and columns, and an extent of the common one") {
  CHECK(only_layer<MaxPool>("[max]\nsize=3\nstride=2\nstride_x=1\n") == MaxPool{3, {2, 1}, 2});
  CHECK(only_layer<MaxPool>("[max]\nstride=2\nstride_y=4\n") == MaxPool{2, {4, 2}, 1});
  CHECK(last_shape("[max]\nsize=2\nstride_x=4\n") == MapShape{3, 8, 3});
  check_refused(kNet + "[max]\nstride_x=0\n", "m.cfg:6", {"stride_x=0"});
}

TEST_CASE("maxpool_depth=1 is a maximum over channels, whatever else is said of windows") {
  const std::string section = "[maxpool]\nmaxpool_depth=1\nsize=3\nstride=2\npadding=1\n";
  CHECK(only_layer<ChannelPool>(section) == ChannelPool{.outputs = 1});
  CHECK(last_shape(section + "out_channels=2\n") == MapShape{2, 8, 12});
  CHECK(parse_model(kNet + section, "m.cfg").warnings.empty());
  check_refused(kNet + section + "out_channels=4\n", "m.cfg:5", {"out_channels=4", "3 input"});
}

TEST_CASE("a dilation keeps the shape of the map, and is refused where Darknet's would not") {
  const std::string section = "[conv]\nsize=3\ndilation=2\n";
  const auto dilated = only_layer<Convolution>(section + "pad=1\n");
  CHECK(dilated.dilation == 2);
  CHECK(dilated.padding == 2);
  CHECK(last_shape(section + "pad=1\n") == MapShape{1, 8, 12});
  CHECK(last_shape(section + "pad=1\nstride=2\n") == MapShape{1, 4, 6});
  CHECK(only_layer<Convolution>("[conv]\nsize=1\ndilation=2\n").dilation == 1);
  check_refused(kNet + section, "m.cfg:7", {"dilation=2", "pad=1"});
  check_refused(kNet + "[conv]\nsize=4\npad=1\ndilation=2\n", "m.cfg:8", {"dilation=2", "odd"});
  check_refused(kNet + "[conv]\ndilation=0\n", "m.cfg:6", {"dilation=0"});
}

TEST_CASE("a layer can add several, and multiply by another") {
  const std::string net = kNet + "[conv]\nfilters=3\n[conv]\nfilters=3\n";
  const auto last = [](const std::string& text) {
    return parse_model(text, "m.cfg").network.layers.back();
  };
  const LayerSpec sum = last(net + "[shortcut]\nfrom=-2,1, 0\nactivation=leaky\n");
  CHECK(sum.inputs == std::vector<int>{1, 0, 1, 0});
  CHECK(std::get<Shortcut>(sum.operation).activation == Activation::Leaky);
  check_refused(net + "[max]\nstride=2\n[shortcut]\nfrom=-2,-3\n", "m.cfg:11", {"same shape"});
  const LayerSpec product = last(net + "[sam]\nfrom=-2\nactivation=relu\n");
  CHECK(product.inputs == std::vector<int>{1, 0});
  CHECK(std::get<Sam>(product.operation).activation == Activation::Relu);
  const LayerSpec scaled = last(net + "[avg]\n[scale_channels]\nfrom=-2\n");
  CHECK(scaled.inputs == std::vector<int>{2, 1});
  CHECK(scaled.output == MapShape{3, 8, 12});
  const LayerSpec placed = last(net + "[conv]\n[scale_channels]\nscale_wh=1\nfrom=-2\n");
  CHECK(std::get<ScaleChannels>(placed.operation).by_place);
  for (const char* section : {"sam", "scale_channels"}) {
    check_refused(net + '[' + section + "]\n", "m.cfg:9", {"from", "missing"});
    check_refused(net + '[' + section + "]\nfrom=-3\n", "m.cfg:10", {"from=-3"});
  }
  check_refused(net + "[scale_channels]\nfrom=-2\n", "m.cfg:9", {"3x1x1", "3x8x12"});
}

TEST_CASE(
    "pad=1 of a local layer is a cell of padding, and keeps the map of filters of three cells") {
  const std::string section = "[local]\nfilters=5\nsize=3\nactivation=leaky\n";
  CHECK(only_layer<Local>(section + "pad=1\n") == Local{5, 3, 1, 1, Activation::Leaky});
  CHECK(last_shape(section + "pad=1\n") == MapShape{5, 8, 12});
  CHECK(last_shape(section + "stride=2\n") == MapShape{5, 3, 5});
  check_refused(kNet + "[local]\nsize=5\npad=1\n", "m.cfg:7", {"pad=1", "size=3"});
}

TEST_CASE("Darknet's other names of sections mean the same") {
  for (const auto& [alias, name] : {std::pair{"conv", "convolutional"},
                                    std::pair{"max", "maxpool"},
                                    std::pair{"avg", "avgpool"},
                                    std::pair{"conn", "connected"},
                                    std::pair{"soft", "softmax"}}) {
    const ModelFile model = parse_model(kNet + '[' + alias + "]\n", "m.cfg");
    CHECK(kind_name(model.network.layer(0).operation) == std::string(name));
  }
  CHECK_NOTHROW(parse_model("[network]\nheight=1\nwidth=1\nchannels=1\n[avg]\n", "m.cfg"));
}

TEST_CASE("the loss of a softmax has a weight, as that of a cost") {
  CHECK(only_layer<Softmax>("[softmax]\n").scale == 1);
  CHECK(only_layer<Softmax>("[softmax]\nscale=0.25\n").scale == 0.25);
  CHECK(only_layer<Cost>("[cost]\nscale=0.25\n").scale == 0.25);
}

TEST_CASE("negative layers count back from the section, others from the first") {
  const std::string three = "[dropout]\n[dropout]\n[dropout]\n";
  const auto inputs = [&](const std::string& section) {
    return parse_model(kNet + three + section, "m.cfg").network.layer(3).inputs;
  };
  CHECK(inputs("[shortcut]\nfrom=-3\n") == std::vector<int>{2, 0});
  CHECK(inputs("[shortcut]\nfrom=1\n") == std::vector<int>{2, 1});
  CHECK(inputs("[route]\nlayers = -1, 0 ,-2\n") == std::vector<int>{2, 0, 1});
  for (const char* wrong : {"-4", "3", "99", "9223372036854775807", "-9223372036854775808"}) {
    check_refused(kNet + three + "[route]\nlayers=-1," + wrong + '\n', "m.cfg:9", {wrong});
    check_refused(kNet + three + "[shortcut]\nfrom=" + wrong + '\n', "m.cfg:9", {wrong});
  }
  check_refused(kNet + "[shortcut]\nfrom=-1\n", "m.cfg:6", {"-1"});
  check_refused(kNet + three + "[shortcut]\n", "m.cfg:8", {"from", "missing"});
  check_refused(kNet + three + "[route]\n", "m.cfg:8", {"layers", "missing"});
}

TEST_CASE("a crop makes the network's image smaller than the picture") {
  const std::string crop = "[crop]\ncrop_height=5\ncrop_width=6\nflip=1\n";
  const ModelFile model = parse_model(kNet + crop + "[avgpool]\n", "m.cfg");
  CHECK(model.picture == MapShape{3, 8, 12});
  CHECK(model.network.image == MapShape{3, 5, 6});
  CHECK(model.network.shape(0) == MapShape{3, 5, 6});
  CHECK(std::get<Crop>(model.network.layer(0).operation).flip);
  check_refused(kNet + "[avgpool]\n" + crop, "m.cfg:6", {"first"});
  check_refused(kNet + "[crop]\ncrop_height=5\n", "m.cfg:5", {"crop_width", "missing"});
  check_refused(kNet + "[crop]\ncrop_height=9\ncrop_width=2\n", "m.cfg:6", {"crop_height", "8"});
}

TEST_CASE("numbers are taken whole or not at all") {
  for (const char* value : {"abc",
                            "3x",
                            "3 3",
                            "3.5",
                            "1e2",
                            "0x10",
                            "--3",
                            "+-3",
                            "3,4",
                            "99999999999999999999",
                            "\xC2\xB2"}) {
    check_refused(
        kNet + "[conv]\n\nfilters=" + value + '\n', "m.cfg:7", {"filters", value, "integer"});
  }
  for (const char* value : {"nan", "inf", "1e999", "0.5f", ".", "-", "0,5"}) {
    check_refused(kNet + "[dropout]\nprobability=" + value + '\n', "m.cfg:6", {value, "number"});
  }
  CHECK(only_layer<Convolution>("[conv]\nfilters=+7\n").filters == 7);
  CHECK(only_layer<Dropout>("[dropout]\nprobability=.25\n").probability == 0.25);
  check_refused(kNet + "steps=1,,2\n[avg]\n", "m.cfg:5", {"steps"});
  check_refused(kNet + "scales=.1,\n[avg]\n", "m.cfg:5", {"scales"});
}

TEST_CASE("lying sizes are refused with their line") {
  check_refused(kNet + "[conv]\nfilters=9999999999\n", "m.cfg:5", {"filters=9999999999"});
  check_refused(kNet + "[conv]\nsize=1099511627776\npad=1\n", "m.cfg:5", {"size=1099511627776"});
  check_refused(kNet + "[conv]\nsize=9\n", "m.cfg:5", {"does not fit"});
  check_refused(kNet + "[maxpool]\nsize=-9223372036854775808\n", "m.cfg:6", {"size"});
  check_refused(kNet + "[maxpool]\nstride=0\n", "m.cfg:6", {"stride=0"});
  check_refused(kNet + "[connected]\noutput=9223372036854775807\n", "m.cfg:5", {"output"});
  check_refused("[net]\nheight=2000000000\nwidth=2000000000\nchannels=2000000000\n[conv]\n",
                "m.cfg:5",
                {"larger"});
  check_refused("[net]\nheight=0\nwidth=1\nchannels=1\n[conv]\n", "m.cfg:2", {"height=0"});
  check_refused("[net]\nheight=1\nchannels=1\n[conv]\n", "m.cfg:1", {"width", "missing"});
}

TEST_CASE("what is no model file is refused with its line") {
  check_refused("", "m.cfg", {"no sections", "[net]"});
  check_refused("# nothing\n\n", "m.cfg", {"no sections"});
  check_refused("[net]\nheight=1\nwidth=1\nchannels=1\n", "m.cfg:1", {"no layers"});
  check_refused("\nfilters=3\n", "m.cfg:2", {"not a Darknet model file", "[net]"});
  check_refused("[conv]\n", "m.cfg:1", {"[conv]", "[net]"});
  check_refused(kNet + "[conv\n", "m.cfg:5", {"[conv"});
  check_refused(kNet + "[conv] size=3\n", "m.cfg:5", {"section"});
  check_refused(kNet + "[conv]\nfilters 3\n", "m.cfg:6", {"filters 3", "key=value"});
  check_refused(kNet + "[conv]\nfilters=\n", "m.cfg:6", {"no value"});
  check_refused(kNet + "[conv]\n=3\n", "m.cfg:6", {"no key"});
  check_refused(kNet + std::string("[conv]\nfilters=\0003\n", 18), "m.cfg:6", {"UTF-8"});
  check_refused(kNet + "# caf\xE9\n[avg]\n", "m.cfg:5", {"UTF-8"});
  check_refused(kNet + "# \xED\xA0\x80\n[avg]\n", "m.cfg:5", {"UTF-8"});
  check_refused(kNet + std::string(100000, 'x') + "\n[avg]\n", "m.cfg:5", {"100000 bytes"});
  CHECK_NOTHROW(
      parse_model(kNet + "# caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\n[avg]\n", "m.cfg"));
}

TEST_CASE("line ends, spaces, comments and a byte order mark change nothing") {
  const std::string plain = kNet + "[conv]\nfilters=5\nsize=3\npad=1\nactivation=leaky\n";
  const std::string dressed =
      "\xEF\xBB\xBF; first\r\n [ net ] \r\n height = 8\r\n\twidth=12 # side\r\nchannels=3\r\n\r\n"
      "[conv]# a layer\r\nfilters =5\r\nsize= 3\r\npad=1;x\r\n  activation = leaky";
  const Network a = parse_model(plain, "m.cfg").network;
  const Network b = parse_model(dressed, "m.cfg").network;
  CHECK(a.image == b.image);
  CHECK(std::get<Convolution>(a.layer(0).operation) == std::get<Convolution>(b.layer(0).operation));
}

TEST_CASE("an unknown key is warned about once, with file and line") {
  const ModelFile model = parse_model(
      kNet + "notruth=1\n[conv]\nfitlers=3\n[conv]\nfitlers=4\n[avg]\nfitlers=1\n", "m.cfg");
  REQUIRE(model.warnings.size() == 2);
  CHECK(model.warnings[0].rfind("m.cfg:7: [conv] fitlers: unknown key", 0) == 0);
  CHECK(model.warnings[1].rfind("m.cfg:11: [avg] fitlers: unknown key", 0) == 0);
}

TEST_CASE("of a key given twice the first counts, with a warning") {
  const ModelFile model = parse_model(kNet + "[conv]\nfilters=3\nfilters=4\n", "m.cfg");
  CHECK(model.network.shape(0).channels == 3);
  REQUIRE(model.warnings.size() == 1);
  CHECK(model.warnings[0].rfind("m.cfg:7: ", 0) == 0);
}

TEST_CASE("layers and options that this program does not train are refused by name") {
  for (const char* name : {"Gaussian_yolo",
                           "local_avgpool",
                           "rnn",
                           "lstm",
                           "gru",
                           "crnn",
                           "normalization",
                           "batchnorm",
                           "activation",
                           "iseg",
                           "net",
                           "",
                           "Convolutional"}) {
    check_refused(kNet + "[avg]\n[" + name + "]\n", "m.cfg:6", {name, "convolutional", "maxpool"});
  }
  check_refused(kNet + "[conv]\nxnor=1\n", "m.cfg:6", {"xnor", "not supported"});
  check_refused(kNet + "[conv]\nactivation=selu\n", "m.cfg:6", {"selu", "leaky", "mish"});
  check_refused(kNet + "[softmax]\ntree=a\n", "m.cfg:6", {"tree"});
  check_refused(kNet + "[cost]\ntype=L1\n", "m.cfg:6", {"L1", "sse"});
  check_refused(kNet + "[reorg]\nextra=1\n", "m.cfg:6", {"extra"});
  check_refused(kNet + "[upsample]\nstride=-2\n", "m.cfg:6", {"stride=-2"});
  check_refused(kNet + "[upsample]\nmode=cubic\n", "m.cfg:6", {"mode=cubic", "bilinear"});
}

TEST_CASE("a [yolo] has the anchors of all heads, and those of its mask") {
  const std::string text = kNet +
                           "[conv]\nfilters=16\n[yolo]\nclasses=3\nnum=3\nmask=0,2\n"
                           "anchors=1,2, 3,4, 5,6\niou_loss=ciou\nmax_delta=5\n"
                           "counters_per_class=100,50,1\nscale_x_y=1.05\n";
  const auto head = std::get<YoloHead>(parse_model(text, "m.cfg").network.layer(1).operation);
  CHECK(head.anchors == std::vector<Anchor>{{1, 2}, {3, 4}, {5, 6}});
  CHECK(head.mask == std::vector<int>{0, 2});
  CHECK(head.box_loss == BoxLoss::Ciou);
  CHECK(head.class_weights == std::vector<double>{1, 2, 5});
  CHECK(head.scale_xy == 1.05);
  CHECK(head.iou_normalizer == 0.75);
}

TEST_CASE("heads of detectors are refused where their input or their keys do not fit") {
  const std::string conv = kNet + "[conv]\nfilters=16\n";
  const std::string anchors = "num=2\nanchors=1,2,3,4\n";
  check_refused(
      conv + "[yolo]\nclasses=4\n" + anchors, "m.cfg:7", {"set filters=18", "16 channels"});
  check_refused(
      conv + "[yolo]\nclasses=3\nnum=3\nanchors=1,2\n", "m.cfg:10", {"expected num=3 pairs"});
  check_refused(conv + "[yolo]\nclasses=3\nmask=0,2\n" + anchors, "m.cfg:9", {"from 0 to 1"});
  check_refused(conv + "[yolo]\nclasses=3\niou_loss=l1\n" + anchors, "m.cfg:9", {"giou"});
  check_refused(
      conv + "[yolo]\nclasses=3\nnum=2\nanchors=1,2,0,4\n", "m.cfg:7", {"must be positive"});
  check_refused(
      conv + "[region]\nclasses=3\ntree=a.tree\n" + anchors, "m.cfg:9", {"tree", "not supported"});
  check_refused(conv + "[region]\nclasses=3\n" + anchors + "[avg]\n", "m.cfg:11", {"[route]"});
  check_refused(conv + "[detection]\ncoords=4\nside=1\nclasses=3\n", "m.cfg:7", {"[connected]"});
  check_refused(kNet + "[connected]\noutput=9\n[detection]\ncoords=4\nside=1\nclasses=3\n",
                "m.cfg:7",
                {"set output=8"});
}

TEST_CASE("layers up to the last with stopbackward=1 are frozen") {
  const std::string stop = "[conv]\nstopbackward=1\n";
  const std::string go = "[conv]\nstopbackward=0\n";
  const ModelFile model = parse_model(kNet + stop + go + stop + go, "m.cfg");
  CHECK(model.warnings.empty());
  CHECK(last_frozen(model.network) == 2);
  CHECK(last_frozen(parse_model(kNet + go + go, "m.cfg").network) == -1);
  check_refused(kNet + go + stop, "m.cfg:7", {"stopbackward=1", "nothing is left to learn"});
}

TEST_CASE("layers up to one with stopbackward=N are frozen in the first N steps") {
  const std::string conv = "[conv]\n";
  const auto stop = [&](int steps) {
    return conv + "stopbackward=" + std::to_string(steps) + "\n";
  };
  const auto frozen = [&](const std::string& layers) {
    return frozen_layers(parse_model(kNet + layers, "m.cfg").network);
  };
  CHECK(frozen(conv + stop(5) + conv) == FrozenLayers{-1, {{5, 1}}});
  CHECK(frozen(stop(9) + stop(5) + conv) == FrozenLayers{-1, {{5, 1}, {9, 0}}});
  CHECK(frozen(stop(5) + stop(9) + conv) == FrozenLayers{-1, {{9, 1}}});
  CHECK(frozen(stop(9) + stop(1) + stop(5) + conv) == FrozenLayers{1, {{5, 2}}});
  const Network network = parse_model(kNet + stop(5) + conv, "m.cfg").network;
  CHECK(last_frozen(network) == -1);
  CHECK(last_frozen(network_in_step(network, 5)) == 0);
  CHECK(last_frozen(network_in_step(network, 6)) == -1);
  check_refused(kNet + stop(-1) + conv, "m.cfg:6", {"stopbackward"});
  check_refused(kNet + conv + stop(8), "m.cfg:6", {"stopbackward=8", "nothing is left to learn"});
}

TEST_CASE("silu is another name of swish") {
  const Network network =
      parse_model(kNet + "[conv]\nactivation=silu\n[conv]\nactivation=swish\n", "m.cfg").network;
  CHECK(std::get<Convolution>(network.layer(0).operation) ==
        std::get<Convolution>(network.layer(1).operation));
}

namespace {

// The warnings about a head with two anchors (of a [detection]: a cell) and one class, behind a
// layer.
std::vector<std::string> head_warnings(const std::string& head,
                                       const std::string& keys,
                                       const std::string& before = "activation=linear") {
  const std::string net = "[net]\nheight=64\nwidth=64\nchannels=3\n";
  const std::string layer =
      head == "detection" ? "[connected]\noutput=6\n" + before + "\n[detection]\nside=1\ncoords=4\n"
                          : "[conv]\nfilters=12\nstride=8\n" + before + "\n[" + head + "]\nnum=2\n";
  return parse_model(net + layer + "classes=1\n" + keys + "\n", "m.cfg").warnings;
}

}  // namespace

TEST_CASE("anchors in the unit of another kind of head, and more than a head has, are warned of") {
  const auto warned = [](const std::string& head, const std::string& anchors) {
    const auto warnings = head_warnings(head, "anchors=" + anchors);
    return warnings.size() == 1 && warnings[0].find("m.cfg:12: [" + head + "] anchors=") == 0;
  };
  const std::string cells = "0.57,0.68, 7.5,3.1";
  const std::string pixels = "8,9, 50,30";
  CHECK(warned("yolo", cells));
  CHECK(warned("yolo", "0.02,0.03, 0.5,0.4"));
  CHECK(warned("yolo", "2.4,3.5, 7.5,3.1"));
  CHECK(head_warnings("yolo", "anchors=" + pixels).empty());
  CHECK(head_warnings("yolo", "anchors=10,14, 344,319").empty());  // made for a larger input
  CHECK(warned("region", pixels));
  CHECK(head_warnings("region", "anchors=" + cells).empty());
  CHECK(head_warnings("region", "anchors=0.57,0.68, 11.2,10").empty());
  CHECK(warned("yolo", pixels + ", 60,60"));
  CHECK(warned("yolo", pixels + ", 60"));
  CHECK(warned("region", cells + ", 3,3"));
}

TEST_CASE("a head behind an activation is warned of, unless it takes what that makes") {
  for (const auto& [head, anchors] : {std::pair{"yolo", "anchors=8,9, 50,30"},
                                      std::pair{"region", "anchors=1,2, 3,4"},
                                      std::pair{"detection", ""}}) {
    CAPTURE(head);
    CHECK(head_warnings(head, anchors).empty());
    for (const char* before : {"activation=leaky", ""}) {
      const auto warnings = head_warnings(head, anchors, before);
      REQUIRE(warnings.size() == 1);
      CHECK(warnings[0].find("set activation=linear") != std::string::npos);
    }
  }
  const std::string new_coords = "anchors=8,9, 50,30\nnew_coords=1";
  CHECK(head_warnings("yolo", new_coords, "activation=logistic").empty());
  CHECK(head_warnings("yolo", new_coords, "activation=leaky").size() == 1);
}

TEST_CASE("a threshold of a head is not per cent") {
  for (const std::string key :
       {"ignore_thresh", "truth_thresh", "iou_thresh", "jitter", "resize", "beta_nms"}) {
    CAPTURE(key);
    CHECK(head_warnings("yolo", "anchors=8,9, 50,30\n" + key + "=1").empty());
    CHECK_THROWS_AS((void)head_warnings("yolo", "anchors=8,9, 50,30\n" + key + "=70"), InputError);
  }
  CHECK_THROWS_AS((void)head_warnings("region", "anchors=1,2, 3,4\nthresh=60"), InputError);
}

TEST_CASE(
    "layers have a factor of the rate, steps in which they are held, and what of them learns") {
  const std::string conv = "[conv]\nbatch_normalize=1\n";
  const ModelFile model = parse_model(
      kNet + conv + conv + "learning_rate=2.5\ntrain_only_bn=1\n" + conv + "dont_update=7\n",
      "m.cfg");
  CHECK(model.warnings.empty());
  CHECK(model.network.layer(0).learning == LearningRules{.norm_only = true});
  CHECK(model.network.layer(1).learning == LearningRules{.rate_factor = 2.5, .norm_only = true});
  CHECK(model.network.layer(2).learning == LearningRules{.steps_held = 7});
  check_refused(kNet + "[conv]\nlearning_rate=-1\n", "m.cfg:6", {"learning_rate=-1"});
  check_refused(kNet + "[conv]\ndont_update=-1\n", "m.cfg:6", {"dont_update=-1"});
  for (const char* key :
       {"clip=1", "smooth=0.1", "onlyforward=1", "burnin_update=1", "grad_centr=1"}) {
    check_refused(kNet + "[conv]\n" + key + '\n', "m.cfg:6", {key, "not supported"});
  }
}

TEST_CASE("AdamW is Adam with decoupled decay, and a cosine ends below its rate") {
  const auto training = [](const std::string& keys) {
    return parse_model("[net]\nwidth=4\nheight=4\nchannels=1\n" + keys + "[avg]\n", "m.cfg")
        .training;
  };
  CHECK(training("adamw=1\n").adam);
  CHECK(training("adamw=1\n").decoupled_decay);
  CHECK(!training("adam=1\n").decoupled_decay);
  CHECK(training("policy=cosine\nlearning_rate_min=0.0001\n").least_rate == 0.0001);
  CHECK_THROWS_WITH_AS(training("policy=cosine\nlearning_rate_min=0.1\n"),
                       doctest::Contains("must not be more than learning_rate"),
                       InputError);
}

TEST_CASE("keys that would change what is computed are refused, unless they say what is usual") {
  struct Row {
    const char* section;
    const char* wrong;
    const char* usual;  // empty: none
  };
  for (const Row& row : {Row{"conv", "antialiasing=1", "antialiasing=0"},
                         Row{"conv", "share_index=3", ""},
                         Row{"conv", "cbn=1", "cbn=0"},
                         Row{"conv", "coordconv=1", "coordconv=0.0"},
                         Row{"conv", "binary=1", "binary=0"},
                         Row{"conv", "batch_normalize=2", "batch_normalize=1"},
                         Row{"conv", "truth=1", "truth=0"},
                         Row{"max", "antialiasing=1", "antialiasing=0"},
                         Row{"dropout", "dropblock=1", "dropblock=0\ndropblock_size_abs=7"},
                         Row{"softmax", "noloss=1", "noloss=0"},
                         Row{"connected", "flipped=1", "flipped=0"}}) {
    CAPTURE(row.wrong);
    const std::string wrong = row.wrong;
    const std::string section = kNet + '[' + row.section + "]\n";
    check_refused(section + wrong + '\n', "m.cfg:6", {wrong.substr(0, wrong.find('\n'))});
    if (*row.usual != '\0') {
      CHECK(parse_model(section + row.usual + '\n', "m.cfg").warnings.empty());
    }
  }
  for (const char* key : {"weights_type=per_feature", "weights_normalization=relu"}) {
    check_refused(kNet + "[avg]\n[avg]\n[avg]\n[shortcut]\n" + key + "\nfrom=-2\n",
                  "m.cfg:9",
                  {key, "not supported"});
  }
  check_refused(kNet + "time_steps=3\n[avg]\n", "m.cfg:5", {"time_steps=3", "not supported"});
  check_refused(kNet + "letter_box=1\n[avg]\n", "m.cfg:5", {"letter_box=1", "not supported"});
  check_refused(kNet + "inputs=7\n[avg]\n", "m.cfg:5", {"inputs=7", "288"});
  CHECK(parse_model(kNet + "inputs=288\ntime_steps=1\nletter_box=0\n[avg]\n", "m.cfg")
            .warnings.empty());
}

TEST_CASE("how a detector's pictures are varied is said by [net] and the last head") {
  const auto model = [](const std::string& net, const std::string& head) {
    return parse_model(kNet + net +
                           "\n[conv]\nfilters=18\nactivation=linear\n[yolo]\nclasses=1\nnum=3\n" +
                           "anchors=2,2, 3,3, 4,4\n" + head + "\n",
                       "m.cfg");
  };
  const ModelFile plain = model("", "");
  CHECK(plain.warnings.empty());
  CHECK(plain.augmentation.jitter == 0.2);  // Darknet's default
  CHECK(plain.augmentation.resize == 1);
  CHECK_FALSE(plain.augmentation.letter_box);
  const ModelFile varied = model("letter_box=1\nmosaic=1\nmosaic_bound=1", "jitter=.3\nresize=1.5");
  CHECK(varied.warnings.empty());
  CHECK(varied.augmentation.jitter == 0.3);
  CHECK(varied.augmentation.resize == 1.5);
  CHECK(varied.augmentation.letter_box);
  CHECK(varied.augmentation.mosaic);
  CHECK(model("mixup=1", "").augmentation.mixup);
  CHECK(model("mixup=1\nmosaic=1", "").augmentation.mixup);
  CHECK(model("", "").augmentation.mixup_share == 1);
  const ModelFile shares = model("mosaic_prob=.5\nmixup_prob=.25\nno_mosaic_epochs=16", "");
  CHECK(shares.warnings.empty());
  CHECK(shares.augmentation.mosaic_share == 0.5);
  CHECK(shares.augmentation.mixup_share == 0.25);
  CHECK(shares.training.no_mosaic_epochs == 16);
  CHECK_THROWS_AS((void)model("mosaic_prob=1.1", ""), InputError);
  CHECK_FALSE(varied.augmentation.top_left);
  CHECK(model("letter_box=2", "").augmentation.letter_box);
  CHECK(model("letter_box=2", "").augmentation.top_left);
  CHECK_THROWS_AS((void)model("letter_box=3", ""), InputError);
  CHECK(plain.augmentation.random == 0);
  const ModelFile scales = model("resize_step=16", "random=1");
  CHECK(scales.warnings.empty());
  CHECK(scales.augmentation.random == 1.4);  // as in Darknet
  CHECK(scales.augmentation.resize_step == 16);
  CHECK(model("", "random=1.2").augmentation.random == 1.2);
  CHECK_THROWS_AS((void)model("", "random=0.5"), InputError);
  CHECK_THROWS_AS((void)model("", "random=11"), InputError);
  CHECK_THROWS_AS((void)model("resize_step=0", ""), InputError);
  CHECK_THROWS_AS((void)model("", "resize=0"), InputError);
  CHECK_THROWS_AS((void)model("", "jitter=-1"), InputError);
}

TEST_CASE("keys that would change training are refused, unless they say what is usual") {
  for (const char* key : {"label_smooth_eps",
                          "cutmix",
                          "mosaic",
                          "mixup",
                          "blur",
                          "gaussian_noise",
                          "clip",
                          "contrastive",
                          "random",
                          "center"}) {
    CAPTURE(key);
    check_refused(kNet + key + "=0.1\n[avg]\n",
                  "m.cfg:5",
                  {std::string("[net] ") + key + "=0.1: not supported, and it changes training"});
    CHECK(parse_model(kNet + key + "=0\n[avg]\n", "m.cfg").warnings.empty());
  }
  for (const char* key : {"dontload=1", "numload=3"}) {
    CAPTURE(key);
    check_refused(kNet + "[conv]\n" + key + '\n', "m.cfg:6", {key, "changes training"});
  }
  CHECK(parse_model(kNet + "[conv]\nlearning_rate=1.0\n", "m.cfg").warnings.empty());
  CHECK(
      parse_model(kNet + "seen=0\ntrack=0\nworkspace_size_limit_MB=9\n[conv]\nstream=1\n", "m.cfg")
          .warnings.empty());
}

// A model with a section that has the least keys it needs, as its last one.
std::string model_with(const std::string& section, const std::string& line) {
  const std::string head = "\nclasses=1\nnum=1\nanchors=2,3\n";
  const std::string before = "[conv]\nfilters=12\n[conv]\nfilters=6\nactivation=linear\n";
  const std::string net = kNet + (section == "net" ? line + '\n' : "");
  if (section == "net") {
    return net + "[avg]\n";
  }
  if (section == "net-of-a-detector") {
    return kNet + line + '\n' + before + "[yolo]" + head;
  }
  // A key that the file gives as well counts as it is given first.
  const std::string start = '[' + section + "]\n" + line;
  if (section == "crop") {
    return net + start + "\ncrop_height=2\ncrop_width=2\n";
  }
  if (section == "yolo" || section == "region") {
    return net + before + start + head;
  }
  if (section == "detection") {
    return net + "[connected]\noutput=6\nactivation=linear\n" + start +
           "\nclasses=1\nside=1\ncoords=4\n";
  }
  if (section == "shortcut" || section == "sam" || section == "scale_channels") {
    return net + "[conv]\nfilters=3\n[conv]\nfilters=3\n" +
           (section == "scale_channels" ? "[avg]\n" : "") + start + "\nfrom=-2\n";
  }
  return net + before + start + (section == "route" ? "\nlayers=-1\n" : "\n");
}

TEST_CASE("no key of Darknet's parsers is unknown, and each is read, without effect or refused") {
  std::ifstream list(std::string(TESSERA_SOURCE_DIR) + "/tests/partitioner/cfg/darknet_keys.txt");
  int keys = 0;
  for (std::string text; std::getline(list, text);) {
    if (text.empty() || text[0] == '#') {
      continue;
    }
    std::istringstream words(text);
    std::string outcome;
    std::string section;
    words >> outcome >> section;
    for (std::string line; words >> line; ++keys) {
      const std::string model = model_with(section, line);
      CAPTURE(section);
      CAPTURE(line);
      if (outcome == "refused") {
        const std::string shown = section == "net-of-a-detector" ? "net" : section;
        const auto place =
            model.begin() + static_cast<std::ptrdiff_t>(model.find('\n' + line + '\n'));
        check_refused(model,
                      "m.cfg:" + std::to_string(std::count(model.begin(), place, '\n') + 2),
                      {'[' + shown + "] " + line + ": not supported"});
        continue;
      }
      REQUIRE((outcome == "supported" || outcome == "harmless"));
      std::string problem;
      try {
        for (const std::string& warning : parse_model(model, "m.cfg").warnings) {
          if (warning.find("given twice") == std::string::npos) {
            problem += warning;
          }
        }
      } catch (const InputError& error) {
        problem = error.what();
      }
      CHECK(problem == "");
    }
  }
  CHECK(keys > 200);
}

TEST_CASE("averages of weights have a share with a rise or without one") {
  const auto training = [](const std::string& line) {
    return parse_model(kNet + line + "\n[avg]\n", "m.cfg").training;
  };
  CHECK(training("").ema_decay == 0);
  CHECK(training("ema_decay=0.9998").ema_decay == 0.9998);
  CHECK(training("ema_decay=0.9998").ema_rises);
  CHECK(training("ema_alpha=0.998").ema_decay == 0.998);
  CHECK(!training("ema_alpha=0.998").ema_rises);
  check_refused(kNet + "ema_decay=1\n[avg]\n", "m.cfg:5", {"ema_decay=1: must be less than 1"});
  check_refused(
      kNet + "ema_decay=0.9\nema_alpha=0.9\n[avg]\n", "m.cfg:6", {"ema_alpha=0.9", "ema_decay"});
}

TEST_CASE("the most that gradients may come to is read") {
  const auto most = [](const std::string& line) {
    return parse_model(kNet + line + "\n[avg]\n", "m.cfg").network.max_gradient_norm;
  };
  CHECK(most("") == 0);
  CHECK(most("max_gradient_norm=10") == 10);
  check_refused(kNet + "max_gradient_norm=-1\n[avg]\n", "m.cfg:5", {"max_gradient_norm=-1"});
}

TEST_CASE("for a misspelt key or section the nearest one is suggested") {
  for (const auto& [wrong, meant] : {std::pair{"Filters", "filters"},
                                     std::pair{"batch_normalise", "batch_normalize"},
                                     std::pair{"batch-normalize", "batch_normalize"},
                                     std::pair{"stirde", "stride"},
                                     std::pair{"Dilatoin", "dilation"}}) {
    const auto warnings = parse_model(kNet + "[conv]\n" + wrong + "=1\n", "m.cfg").warnings;
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find(std::string("did you mean `") + meant + "`?") != std::string::npos);
  }
  const auto rate = parse_model(kNet + "learning_rat=1\n[avg]\n", "m.cfg").warnings;
  REQUIRE(rate.size() == 1);
  CHECK(rate[0].find("did you mean `learning_rate`?") != std::string::npos);
  for (const std::string& warning :
       parse_model(kNet + "[conv]\nwobble=1\nlr=1\n", "m.cfg").warnings) {
    CHECK(warning.find("did you mean") == std::string::npos);
  }
  check_refused(kNet + "[convolution]\n", "m.cfg:5", {"did you mean `convolutional`?"});
  check_refused(kNet + "[MaxPool]\n", "m.cfg:5", {"did you mean `maxpool`?"});
  check_refused(kNet + "[lstm]\n", "m.cfg:5", {"a layer of Darknet that this program does not"});
}

TEST_CASE("of a file that does not begin as a model does nothing is quoted") {
  for (const char* text : {"root:secret:19000:0\n",
                           "password=secret\n",
                           "[secret]\nuser=secret\n",
                           "[secret\n",
                           "secret\n[net]\n",
                           "# comment\n\n{\"token\": \"secret\"}\n"}) {
    CAPTURE(text);
    try {
      (void)parse_model(text, "m.cfg");
      FAIL_CHECK("accepted");
    } catch (const InputError& error) {
      const std::string message = error.what();
      CHECK(message.find("not a Darknet model file") != std::string::npos);
      CHECK(message.find("secret") == std::string::npos);
    }
  }
}

TEST_CASE("UTF-16 is named, line ends of old Macs are line ends") {
  const std::string utf8 = kNet + "[avg]\n";
  for (const bool mark : {true, false}) {
    std::string little = mark ? "\xFF\xFE" : "";
    std::string big = mark ? "\xFE\xFF" : "";
    for (const char letter : utf8) {
      little += {letter, '\0'};
      big += {'\0', letter};
    }
    check_refused(little, "m.cfg", {"UTF-16", "UTF-8"});
    check_refused(big, "m.cfg", {"UTF-16", "UTF-8"});
  }
  std::string mac = utf8;
  std::replace(mac.begin(), mac.end(), '\n', '\r');
  CHECK(parse_model(mac, "m.cfg").network.size() == 1);
  check_refused(kNet + "\r\n[conv\r\n", "m.cfg:6", {"[conv"});
}

TEST_CASE("sections, keys and warnings are bounded") {
  std::string keys;
  for (int i = 0; i < 300; ++i) {
    keys += "wobble" + std::to_string(i) + "=1\n";
  }
  const auto warnings = parse_model(kNet + "[conv]\n" + keys, "m.cfg").warnings;
  CHECK(warnings.size() == 101);
  CHECK(warnings.back().find("more warnings") != std::string::npos);
  check_refused(
      kNet + "[conv]\n" + keys + keys + keys + keys, "m.cfg:1006", {"more than 1000 keys"});
}

TEST_CASE("training keys that contradict each other are refused") {
  const auto check = [](const std::string& key, const char* part) {
    check_refused(kNet + key + "\n[avg]\n", "m.cfg:5", {part});
  };
  check("subdivisions=2", "batch=1");
  check("policy=random", "poly");
  check("momentum=1.5", "momentum");
  check("B1=1", "B1");
  check("step=0", "step");
  check("batch=0", "batch");
  check("batch=2000000000", "batch");
  check("aspect=0", "aspect");
  check("max_crop=3", "max_crop");
  check("adam=2", "adam");
  check("batch_norm_epsilon=0", "batch_norm_epsilon");
  check("batch_norm_rule=torch", "expected pytorch or darknet");
  check("batch_norm_epsilon=1e-3\nbatch_norm_rule=darknet",
        "no effect with batch_norm_rule=darknet");
  check_refused(kNet + "batch=6\nsubdivisions=4\n[avg]\n", "m.cfg:6", {"divide batch=6"});
  check_refused(kNet + "policy=steps\nsteps=1,2\nscales=1\n[avg]\n", "m.cfg:7", {"as many"});
  check_refused(kNet + "policy=steps\nsteps=2,1\nscales=1,1\n[avg]\n", "m.cfg:6", {"ascending"});
  check_refused(kNet + "policy=steps\n[avg]\n", "m.cfg:1", {"missing"});
}

TEST_CASE("a rule of batch normalisation brings its program's numbers") {
  const auto norm = [](const std::string& keys) {
    return parse_model(kNet + keys + "[avg]\n", "m.cfg").training.norm;
  };
  CHECK(norm("") == NormRule{.form = NormForm::PyTorch, .rate = 0.1, .epsilon = 1e-5});
  CHECK(norm("batch_norm_rule=pytorch\n") == NormRule{});
  CHECK(norm("batch_norm_rate=0.5\nbatch_norm_epsilon=1e-3\n") ==
        NormRule{.rate = 0.5, .epsilon = 1e-3});
  CHECK(norm("batch_norm_rule=darknet\n") == kDarknetNorm);
  CHECK(norm("batch_norm_rule=darknet\n").rate == 0.01);
  CHECK(norm("batch_norm_rule=darknet\nbn_rate=0.2\n").rate == 0.2);
}

TEST_CASE("one bound of the crop brings Darknet's default for the other") {
  const auto crops = [](const std::string& keys) {
    const AugmentationOptions found = parse_model(kNet + keys + "[avg]\n", "m.cfg").augmentation;
    return std::pair{found.min_crop, found.max_crop};
  };
  CHECK(crops("") == std::pair<Index, Index>{0, 0});
  CHECK(crops("min_crop=9\n") == std::pair<Index, Index>{9, 24});
  CHECK(crops("max_crop=20\n") == std::pair<Index, Index>{12, 20});
  CHECK(crops("min_crop=30\nmax_crop=30\n") == std::pair<Index, Index>{30, 30});
  CHECK(crops("min_ratio=0.8\nmin_crop=1\n") == std::pair<Index, Index>{9, 24});
  CHECK(crops("max_ratio=1.5\n") == std::pair<Index, Index>{12, 18});
}

TEST_CASE("a damaged file is either read or refused with its name") {
  const std::string whole = text_of(models_folder() + "fashion-resnet.cfg");
  REQUIRE(!whole.empty());
  std::mt19937_64 generator(7);
  const auto below = [&](std::size_t count) {
    return static_cast<std::size_t>(generator() % count);
  };
  const std::string inserted =
      "0123456789-+.=[]#;,\n\r \x01"
      "e\xFF";
  int refused = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::string text = whole;
    for (std::size_t edits = 1 + below(4); edits > 0 && !text.empty(); --edits) {
      const std::size_t at = below(text.size());
      const std::size_t kind = below(4);
      if (kind == 0) {
        text.erase(at, 1 + below(20));
      } else if (kind == 1) {
        text.insert(at, 1 + below(12), inserted[below(inserted.size())]);
      } else if (kind == 2) {
        text[at] = inserted[below(inserted.size())];
      } else if (below(8) == 0) {
        text.resize(at);
      }
    }
    try {
      const ModelFile model = parse_model(text, "m.cfg");
    } catch (const InputError& error) {
      ++refused;
      CHECK(std::string(error.what()).rfind("m.cfg", 0) == 0);
    }
  }
  CHECK(refused > 100);
}

TEST_CASE("a path that is no readable file is refused with its name") {
  for (const char* path : {"/nonexistent/model.cfg", "/", "/dev/zero"}) {
    CAPTURE(path);
    CHECK_THROWS_WITH_AS((void)read_model(path), doctest::Contains(path), InputError);
  }
}

}  // namespace tessera::partitioner
