"""A step of training of a detector by Debian's Darknet: random tensors and boxes for it, and what darknet_step makes of them."""

import pathlib
import struct
import subprocess
import tempfile

import numpy

MOST_BOXES = 4
CFG_FOLDER = pathlib.Path("/usr/share/darknet/cfg")
# Keys that change what a step computes.
KEPT = {
    "convolutional": ("batch_normalize", "filters", "size", "stride", "pad", "activation"),
    "maxpool": ("size", "stride"),
    "connected": ("output", "activation"),
    "route": ("layers",),
    "upsample": ("stride",),
    "reorg": ("stride",),
    "yolo": ("mask", "anchors", "classes", "num", "ignore_thresh", "truth_thresh"),
    "region": ("anchors", "bias_match", "classes", "coords", "num", "softmax", "rescore", "object_scale", "noobject_scale",
               "class_scale", "coord_scale", "absolute", "thresh"),
    "detection": ("classes", "coords", "rescore", "side", "num", "softmax", "sqrt", "object_scale", "noobject_scale",
                  "class_scale", "coord_scale"),
}  # fmt: skip


def all_sections(text):
    """(name, keys) of each section."""
    found = []
    for line in text.splitlines():
        line = line.split("#")[0].replace(" ", "").replace("\t", "")
        if line.startswith("["):
            found.append((line.strip("[]"), {}))
        elif "=" in line:
            key, value = line.split("=", 1)
            found[-1][1][key] = value
    return found


def sections(text):
    """Of the layers."""
    return all_sections(text)[1:]


def net_lines(batch, rows, cols, more=""):
    return f"[net]\nbatch={batch}\nsubdivisions=1\nheight={rows}\nwidth={cols}\nchannels=3\nlearning_rate=0.001\n{more}"


def shipped_model(name, batch, rows, cols, divisor=1, fewest=4, classes=None, side=None):
    """A model of Debian's with an input of other sizes, by Darknet's rule of batch normalisation. Filters are divided,
    but to no fewer than `fewest`; heads have other classes, and a [detection] a grid of another side, where they are given."""
    layers = sections((CFG_FOLDER / f"{name}.cfg").read_text())
    for index, (kind, keys) in enumerate(layers):
        if kind == "convolutional" and int(keys.get("batch_normalize", 0)):
            keys["filters"] = max(int(keys["filters"]) // divisor, fewest)
        if kind in ("yolo", "region", "detection") and classes:
            keys["classes"] = classes
        if kind == "detection":
            keys["side"] = side or keys["side"]
            outputs = int(keys["side"]) ** 2 * (int(keys["classes"]) + 5 * int(keys["num"]))
            layers[index - 1][1]["output"] = outputs
        elif kind in ("yolo", "region"):
            boxes = len(keys["mask"].split(",")) if kind == "yolo" else int(keys["num"])
            layers[index - 1][1]["filters"] = boxes * (5 + int(keys["classes"]))
    text = net_lines(batch, rows, cols, "batch_norm_rule=darknet\n")
    for kind, keys in layers:
        text += f"[{kind}]\n" + "".join(f"{key}={keys[key]}\n" for key in KEPT[kind] if key in keys)
        if kind == "yolo":
            text += "iou_normalizer=1\n"
    return text


class Model:
    """The text of a model file, and shapes that follow from it."""

    def __init__(self, text):
        self.text = text
        self.layers = sections(text)
        net = all_sections(text)[0][1]
        self.batch = int(net["batch"])
        self.image = (int(net["channels"]), int(net["height"]), int(net["width"]))
        self.maps = []  # (C, H, W) of each layer
        self.weights = {}  # by layer: (K, C, F, F), or (K, C) of dense layers
        shape = self.image
        for index, (name, keys) in enumerate(self.layers):
            shape = self.output(index, name, keys, shape)
            self.maps.append(shape)

    def output(self, index, name, keys, shape):
        channels, rows, cols = shape
        stride = int(keys.get("stride", 1))
        if name == "convolutional":
            self.weights[index] = (int(keys["filters"]), channels, int(keys["size"]), int(keys["size"]))
            return (int(keys["filters"]), -(-rows // stride), -(-cols // stride))
        if name == "maxpool":
            return (channels, -(-rows // stride), -(-cols // stride))
        if name == "connected":
            self.weights[index] = (int(keys["output"]), channels * rows * cols)
            return (int(keys["output"]), 1, 1)
        if name == "upsample":
            return (channels, stride * rows, stride * cols)
        if name == "reorg":
            return (channels * stride**2, rows // stride, cols // stride)
        if name == "route":
            sources = [self.maps[index + int(i) if int(i) < 0 else int(i)] for i in keys["layers"].split(",")]
            return (sum(each[0] for each in sources), *sources[0][1:])
        return shape

    def normalizes(self, index):
        return int(self.layers[index][1].get("batch_normalize", 0)) != 0

    @property
    def head(self):
        """Its name and keys."""
        return self.layers[-1]


def draw_boxes(random, batch, classes):
    """Boxes in cells and of anchors of their own: two on one box are more than this Darknet takes in."""
    boxes = []
    for image in range(batch):
        places = random.permutation(6)[: MOST_BOXES - image]
        for place in places:
            x = (place % 3 + random.uniform(0.2, 0.8)) / 3
            y = (place // 3 + random.uniform(0.2, 0.8)) / 2
            boxes.append((image, random.randint(classes), x, y, random.uniform(0.08, 0.7), random.uniform(0.08, 0.8)))
    return [tuple(numpy.float32(value) for value in box) for box in boxes]


def draw(random, model, classes):
    """Tensors as `tessera gradients` takes them, all float32, and the boxes once more as a list."""
    tensors = {"input": random.uniform(0, 1, (model.batch, *model.image)).astype(numpy.float32)}
    for index, shape in model.weights.items():
        name = f"layers.{index}."
        fan_in = numpy.prod(shape[1:])
        tensors[name + "weight"] = random.normal(0, 1.3 / numpy.sqrt(fan_in), shape).astype(numpy.float32)
        tensors[name + "bias"] = random.normal(0, 0.2, shape[0]).astype(numpy.float32)
        if model.normalizes(index):
            scale = random.normal(0, 0.5, shape[0])
            tensors[name + "bn.scale"] = (scale + numpy.copysign(0.5, scale)).astype(numpy.float32)
            tensors[name + "bn.mean"] = random.normal(0, 0.3, shape[0]).astype(numpy.float32)
            tensors[name + "bn.variance"] = random.uniform(0.3, 2, shape[0]).astype(numpy.float32)
    boxes = draw_boxes(random, model.batch, classes)
    listed = numpy.full((model.batch, MOST_BOXES, 5), -1, numpy.float32)
    for i in range(model.batch):
        for j, box in enumerate(box for box in boxes if box[0] == i):
            listed[i, j] = box[1:]
    tensors["boxes"] = listed
    return tensors, boxes


def truth_of(model, boxes, classes):
    name, keys = model.head
    if name == "detection":
        side = int(keys["side"])
        truth = numpy.zeros((model.batch, side, side, 5 + classes), numpy.float32)
        for image, label, x, y, width, height in boxes:
            image, label = int(image), int(label)
            col, row = int(x * numpy.float32(side)), int(y * numpy.float32(side))
            if truth[image, row, col, 0] == 0:
                truth[image, row, col, 0] = 1
                truth[image, row, col, 1 + label] = 1
                truth[image, row, col, 1 + classes :] = (x * side - col, y * side - row, width, height)
        return truth
    truth = numpy.zeros((model.batch, 90 if name == "yolo" else 30, 5), numpy.float32)
    counts = [0] * model.batch
    for image, label, x, y, width, height in boxes:
        image = int(image)
        truth[image, counts[image]] = (x, y, width, height, label)
        counts[image] += 1
    return truth


def darknet_step(program, model, tensors, boxes, element=numpy.float32):
    """What Darknet makes of them under the names of `tessera gradients`, and its margin. `element`: what `program` computes with."""
    classes = int(model.head[1]["classes"])
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "cfg").write_text(model.text)
        with open(folder / "weights", "wb") as out:
            out.write(struct.pack("<iiiq", 0, 2, 0, 0))
            for index, shape in model.weights.items():
                order = ["bias", "bn.scale", "bn.mean", "bn.variance", "weight"]
                if len(shape) == 2:
                    order = ["bias", "weight", "bn.scale", "bn.mean", "bn.variance"]
                for part in order:
                    if f"layers.{index}.{part}" in tensors:
                        out.write(tensors[f"layers.{index}.{part}"].astype(element).tobytes())
        tensors["input"].astype(element).tofile(folder / "image")
        truth_of(model, boxes, classes).astype(element).tofile(folder / "truth")
        subprocess.run(
            [program, *(folder / name for name in ("cfg", "weights", "image", "truth")), folder],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip

        def floats(name, shape):
            return numpy.fromfile(folder / name, element).reshape(shape)

        expected = {"input_gradient": -floats("input", tensors["input"].shape)}
        loss = 0
        for index, shape in enumerate(model.maps):
            if (folder / f"cost.{index}").exists():
                expected[f"output.{index}"] = floats(f"output.{index}", (model.batch, *shape))
                expected[f"delta.{index}"] = floats(f"delta.{index}", (model.batch, *shape))
                loss += float(floats(f"cost.{index}", 1)[0])
        expected["loss"] = numpy.array([loss], element)
        for index, shape in model.weights.items():
            name = f"layers.{index}."
            expected[name + "weight"] = -floats(f"weight.{index}", shape)
            expected[name + "bias"] = -floats(f"bias.{index}", shape[0])
            if model.normalizes(index):
                expected[name + "bn.scale"] = -floats(f"scale.{index}", shape[0])
                expected[name + "bn.mean"] = floats(f"mean.{index}", shape[0])
                expected[name + "bn.variance"] = floats(f"variance.{index}", shape[0])
        return expected, float(floats("margin", 1)[0])
