#!/usr/bin/python3
"""Makes detectors/NAME.cfg and NAME.safetensors: a step of training of small detectors, from Debian's Darknet.

    cc -I/usr/lib/darknet/include darknet_step.c -L/usr/lib/darknet -ldarknet -lm \\
      -Wl,-rpath,/usr/lib/darknet -o /tmp/darknet_step
    /usr/bin/python3 make_detector_golden.py /tmp/darknet_step

Needs Debian's darknet and python3-numpy. See README.md.
"""

import array
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy

from safetensors_file import write_safetensors

FOLDER = pathlib.Path(__file__).parent / "detectors"
BATCH = 2
ROWS, COLS = 32, 64
MOST_BOXES = 4

NET = f"[net]\nbatch={BATCH}\nsubdivisions=1\nheight={ROWS}\nwidth={COLS}\nchannels=3\nlearning_rate=0.001\n"


def conv(filters, size=3, stride=1, activation="leaky"):
    return f"[convolutional]\nfilters={filters}\nsize={size}\nstride={stride}\npad=1\nactivation={activation}\n"


POOL = "[maxpool]\nsize=2\nstride=2\n"


def region(classes, keys):
    return (
        NET + conv(8) + POOL + conv(12) + POOL + conv(16, stride=2) + POOL
        + conv(3 * (5 + classes), size=1, activation="linear")
        + f"[region]\nanchors=0.7,0.9, 2.1,1.2, 3.5,3.1\nnum=3\nclasses={classes}\ncoords=4\n{keys}"
    )


def yolo(classes):
    def head(mask):
        return (
            f"[yolo]\nmask={mask}\nanchors=9,12, 20,17, 30,41, 61,35\nnum=4\nclasses={classes}\n"
            "ignore_thresh=.5\ntruth_thresh=1\niou_normalizer=1\n"
        )

    filters = 2 * (5 + classes)
    return (
        NET + conv(8, stride=2) + conv(12, stride=2) + conv(16, stride=2)  # 2: a cell of 8 pixels
        # What a route reads, too, is read by filters of 3 x 3: this Darknet's 1 x 1 filters forget what the route sent.
        + conv(16, stride=2) + conv(12) + conv(filters, size=1, activation="linear") + head("2,3")  # 6
        + "[route]\nlayers=-4\n" + conv(8, size=1) + "[upsample]\nstride=2\n"  # 9
        + "[route]\nlayers=-1,2\n" + conv(12) + conv(filters, size=1, activation="linear")
        + head("0,1")  # 13
    )


def detection(side, boxes, classes, keys):
    outputs = side * side * (classes + 5 * boxes)
    return (
        NET + conv(6, stride=2) + POOL + conv(8, stride=2) + POOL
        + f"[connected]\noutput=24\nactivation=leaky\n[connected]\noutput={outputs}\nactivation=linear\n"
        + f"[detection]\nside={side}\nnum={boxes}\nclasses={classes}\ncoords=4\n{keys}"
    )


CASES = {
    "region_softmax": (region(4, "softmax=1\nbias_match=1\nrescore=1\nobject_scale=5\nthresh=.6\n"), 4),
    "region_logistic": (region(3, "thresh=.2\ncoord_scale=2\nnoobject_scale=.5\nclass_scale=1.5\n"), 3),
    "yolo": (yolo(3), 3),
    "detection": (
        detection(3, 2, 4, "sqrt=1\nrescore=1\nobject_scale=1\nnoobject_scale=.5\nclass_scale=1\ncoord_scale=5\n"), 4),
    "detection_softmax": (detection(2, 3, 3, "softmax=1\nsqrt=0\nrescore=0\ncoord_scale=2\n"), 3),
}


def sections(text):
    """(name, keys) of each section after [net]."""
    found = []
    for line in text.splitlines():
        if line.startswith("["):
            found.append((line.strip("[]"), {}))
        elif "=" in line:
            key, value = line.split("=", 1)
            found[-1][1][key] = value
    return found[1:]


def half(size):
    return (size + 1) // 2


def shapes(text):
    """Shapes of weights by layer: (K, C, F, F), or (K, C) of dense layers."""
    maps, weights = [], {}
    shape = (3, ROWS, COLS)
    for index, (name, keys) in enumerate(sections(text)):
        channels, rows, cols = shape
        if name == "convolutional":
            filters, size, stride = int(keys["filters"]), int(keys["size"]), int(keys["stride"])
            weights[index] = (filters, channels, size, size)
            shape = (filters, rows if stride == 1 else half(rows), cols if stride == 1 else half(cols))
        elif name == "maxpool":
            shape = (channels, half(rows), half(cols))
        elif name == "connected":
            weights[index] = (int(keys["output"]), channels * rows * cols)
            shape = (int(keys["output"]), 1, 1)
        elif name == "upsample":
            shape = (channels, 2 * rows, 2 * cols)
        elif name == "route":
            sources = [maps[index + int(i) if int(i) < 0 else int(i)] for i in keys["layers"].split(",")]
            shape = (sum(each[0] for each in sources), *sources[0][1:])
        maps.append(shape)
    return maps, weights


def draw_boxes(random, classes):
    """Boxes in cells and of anchors of their own: two on one box are more than this Darknet takes in."""
    boxes = []
    for image in range(BATCH):
        places = random.permutation(6)[: MOST_BOXES - image]
        for place in places:
            x = (place % 3 + random.uniform(0.2, 0.8)) / 3
            y = (place // 3 + random.uniform(0.2, 0.8)) / 2
            boxes.append((image, random.randint(classes), x, y, random.uniform(0.08, 0.7), random.uniform(0.08, 0.8)))
    return boxes


def truth_of(text, boxes, classes):
    name, keys = sections(text)[-1]
    if name == "detection":
        side = int(keys["side"])
        truth = numpy.zeros((BATCH, side, side, 5 + classes), numpy.float32)
        for image, label, x, y, width, height in boxes:
            col, row = int(numpy.float32(x) * numpy.float32(side)), int(numpy.float32(y) * numpy.float32(side))
            if truth[image, row, col, 0] == 0:
                truth[image, row, col, 0] = 1
                truth[image, row, col, 1 + label] = 1
                truth[image, row, col, 1 + classes :] = (x * side - col, y * side - row, width, height)
        return truth
    truth = numpy.zeros((BATCH, 90 if name == "yolo" else 30, 5), numpy.float32)
    counts = [0] * BATCH
    for image, label, x, y, width, height in boxes:
        truth[image, counts[image]] = (x, y, width, height, label)
        counts[image] += 1
    return truth


def floats(path):
    return numpy.fromfile(path, numpy.float32)


def make(program, name, text, classes):
    random = numpy.random.RandomState(zlib.crc32(name.encode()) % 2**32)
    maps, weight_shapes = shapes(text)
    tensors = {}
    image = random.uniform(0, 1, (BATCH, 3, ROWS, COLS)).astype(numpy.float32)
    for index, shape in weight_shapes.items():
        fan_in = numpy.prod(shape[1:])
        tensors[f"layers.{index}.weight"] = random.normal(0, 1.3 / numpy.sqrt(fan_in), shape).astype(numpy.float32)
        tensors[f"layers.{index}.bias"] = random.normal(0, 0.2, shape[0]).astype(numpy.float32)
    boxes = [tuple(numpy.float32(value) for value in box) for box in draw_boxes(random, classes)]
    listed = numpy.full((BATCH, MOST_BOXES, 5), -1, numpy.float32)
    for i in range(BATCH):
        for j, box in enumerate(box for box in boxes if box[0] == i):
            listed[i, j] = box[1:]
    (FOLDER / f"{name}.cfg").write_text(text)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        with open(folder / "weights", "wb") as out:
            out.write(struct.pack("<iiiq", 0, 2, 0, 0))
            for index in weight_shapes:
                out.write(tensors[f"layers.{index}.bias"].tobytes())
                out.write(tensors[f"layers.{index}.weight"].tobytes())
        image.tofile(folder / "image")
        truth_of(text, [(int(b[0]), int(b[1]), *b[2:]) for b in boxes], classes).tofile(folder / "truth")
        subprocess.run(
            [program, FOLDER / f"{name}.cfg", folder / "weights", folder / "image", folder / "truth", folder],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        expected = {"input_gradient": -floats(folder / "input").reshape(image.shape)}
        loss = 0
        for index, shape in enumerate(maps):
            if (folder / f"cost.{index}").exists():
                expected[f"output.{index}"] = floats(folder / f"output.{index}").reshape(BATCH, *shape)
                expected[f"delta.{index}"] = floats(folder / f"delta.{index}").reshape(BATCH, *shape)
                loss += float(floats(folder / f"cost.{index}")[0])
        expected["loss"] = numpy.array([loss], numpy.float32)
        for index, shape in weight_shapes.items():
            expected[f"layers.{index}.weight"] = -floats(folder / f"weight.{index}").reshape(shape)
            expected[f"layers.{index}.bias"] = -floats(folder / f"bias.{index}")
    tensors.update({"input": image, "boxes": listed})
    tensors.update({f"expected.{key}": value for key, value in expected.items()})
    write_safetensors(
        FOLDER / f"{name}.safetensors",
        {key: (value.shape, array.array("f", value.astype(numpy.float32).tobytes())) for key, value in tensors.items()})
    print(f"{name}: cost {loss:.6g}")


if __name__ == "__main__":
    for case, (model, class_count) in CASES.items():
        make(sys.argv[1], case, model, class_count)
