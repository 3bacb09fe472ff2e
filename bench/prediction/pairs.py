#!/usr/bin/env python3
"""Draws the pairs of network and partition that predictions are judged by: see --help.

All follows from one seed. A network is drawn as a Darknet model file: a stem, stages of one kind of block each, and a tail that
classifies or detects. Its partitions are `auto` and two at random: a grid for the first layers, in groups, then images or output
channels. A third of the random networks, and of the pairs of published model and cluster, is kept apart: nothing is tuned on it.
"""

import argparse
import csv
import hashlib
import io
import pathlib
import random
import sys

SEED = 20261130
NETWORKS = 60
RANDOM_PARTITIONS = 2  # of each network on a cluster, beside `auto`
LEAST_MACS, MOST_MACS = 4e6, 9e8  # multiply-adds of a forward pass of the batch: up to some seconds a step on a Raspberry Pi 3
MOST_VALUES = 3e7  # of all maps of a batch

# Model, size, batch.
PUBLISHED = [
    ("yolov2-early", "608x608", 1),
    ("yolov2-early", "416x416", 4),
    ("fashion-resnet", "112x112", 8),
    ("lenet5", "own", 128),
    ("small-vgg", "own", 16),
    ("mobilenetv2", "own", 2),
    ("yolov4-tiny-clothes", "own", 2),
    ("yolox-nano-clothes", "own", 4),
]
CLUSTERS_OF_PUBLISHED = 3
LATER_KEYS = {"max_gradient_norm"}  # of models, since the list was drawn: it is of models without them
FIELDS = ["network", "size", "batch", "cluster", "partition", "options", "kept", "model_sha256"]


# ---- clusters ----


def clusters():
    """Name -> lines of a description for bench/cluster: 1 to 6 Raspberry Pi 3, and 2 to 6 unlike devices."""
    draw = random.Random(f"{SEED} clusters")
    made = {f"equal-{count}": [(4.5, 900, 100)] * count for count in range(1, 7)}
    for count in range(2, 7):
        while True:
            devices = [(draw.choice([2.25, 3.5, 4.5, 6, 9]), 900, draw.choice([30, 100, 100, 300])) for _ in range(count)]
            speeds = [speed for speed, _, _ in devices]
            if sum(speeds) <= 27 and max(speeds) > min(speeds):  # as many as one processor of a desktop can emulate
                break
        made[f"unlike-{count}"] = devices
    return {
        name: [f"pi{i}  speed={speed:g}  memory={memory}  rate={rate}" for i, (speed, memory, rate) in enumerate(devices, 1)]
        for name, devices in made.items()
    }


def device_count(cluster):
    return int(cluster.rpartition("-")[2])


# ---- networks ----


class Model:
    """A model file that grows layer by layer, with the shape of its last map."""

    def __init__(self, draw, batch, rows, cols):
        self.draw = draw
        self.batch = batch
        self.text = [f"[net]\nbatch={batch}\nsubdivisions=1\nheight={rows}\nwidth={cols}\nchannels=3\nlearning_rate=0.001\nmax_batches=1000\n"]
        self.channels, self.rows, self.cols = 3, rows, cols
        self.layers = 0
        self.macs = self.values = 0
        self.activation = draw.choice(["leaky", "relu", "relu", "swish", "mish", "relu6", "linear"])
        self.normalized = draw.random() < 0.85

    def _add(self, section, keys):
        self.text.append(f"[{section}]\n" + "".join(f"{key}={value}\n" for key, value in keys.items()))
        self.layers += 1
        self.values += self.batch * self.channels * self.rows * self.cols

    def convolution(self, filters, size, stride=1, groups=1, activation=None, normalized=None):
        keys = {"batch_normalize": 1} if (self.normalized if normalized is None else normalized) else {}
        keys |= {"filters": filters, "size": size, "stride": stride, "pad": 1}
        if groups > 1:
            keys["groups"] = groups
        keys["activation"] = activation or self.activation
        row = self.channels // groups * size * size
        self.channels = filters
        self.rows, self.cols = (self.rows + 2 * (size // 2) - size) // stride + 1, (self.cols + 2 * (size // 2) - size) // stride + 1
        self.macs += self.batch * row * filters * self.rows * self.cols
        self._add("convolutional", keys)

    def pool(self):
        self.rows, self.cols = self.rows // 2, self.cols // 2
        self._add("maxpool", {"size": 2, "stride": 2, "padding": 0})

    def shortcut(self, back):
        self._add("shortcut", {"from": -back, "activation": self.draw.choice(["linear", self.activation])})

    def route(self, layers, channels):
        self.channels = channels
        self._add("route", {"layers": ",".join(str(layer) for layer in layers)})

    def half(self):
        """The second half of the channels of the last map."""
        self.channels //= 2
        self._add("route", {"layers": -1, "groups": 2, "group_id": 1})

    def block(self, kind, filters):
        if kind == "plain":
            self.convolution(filters, self.draw.choice([3, 3, 3, 5]))
            if self.draw.random() < 0.4:
                self.convolution(max(8, filters // 2), 1)
                self.convolution(filters, 3)
        elif kind == "residual":
            if self.channels != filters:
                self.convolution(filters, 1)
            self.convolution(filters, 3)
            self.convolution(filters, 3, activation="linear")
            self.shortcut(3)
        elif kind == "separable":
            self.convolution(self.channels, self.draw.choice([3, 3, 5]), groups=self.channels)
            self.convolution(filters, 1)
        elif kind == "inverted":
            wide = filters * self.draw.choice([2, 4])
            if self.channels != filters:
                self.convolution(filters, 1, activation="linear")
            self.convolution(wide, 1)
            self.convolution(wide, 3, groups=wide)
            self.convolution(filters, 1, activation="linear")
            self.shortcut(4)
        else:  # partial: half of the channels go through, as in YOLOv4-tiny
            self.convolution(filters, 3)
            first = self.layers - 1
            self.half()
            self.convolution(filters // 2, 3)
            self.convolution(filters // 2, 3)
            self.route([-1, -2], filters)
            self.convolution(filters, 1)
            self.route([first, -1], 2 * filters)

    def tail(self):
        kind = self.draw.choice(["pooled", "pooled", "connected", "detects", "maps"])
        classes = self.draw.choice([2, 10, 20])
        if kind == "pooled":
            self.convolution(classes, 1, activation="linear", normalized=False)
            self.rows = self.cols = 1
            self._add("avgpool", {})
            self._add("softmax", {})
        elif kind == "connected":
            self._connected(self.draw.choice([32, 64]), self.activation)
            self._connected(classes, "linear")
            self._add("softmax", {})
        elif kind == "detects":
            self.convolution(3 * (5 + classes), 1, activation="linear", normalized=False)
            keys = {"mask": "0,1,2", "anchors": "10,14, 23,27, 37,58", "classes": classes, "num": 3, "ignore_thresh": 0.7, "truth_thresh": 1}
            self._add("yolo", keys)
        # maps: no more layers, as of yolov2-early

    def _connected(self, outputs, activation):
        self.macs += self.batch * self.channels * self.rows * self.cols * outputs
        self.channels, self.rows, self.cols = outputs, 1, 1
        self._add("connected", {"output": outputs, "activation": activation})


def drawn_model(number):
    """The text of random network `number`, how many layers are before its tail, the rows of the last of these, and batch."""
    draw = random.Random(f"{SEED} network {number}")
    while True:
        rows = draw.choice([48, 64, 96, 128, 160, 224, 320])
        cols = rows if draw.random() < 0.7 else draw.choice([48, 64, 96, 128, 160, 224, 320])
        model = Model(draw, draw.choice([1, 1, 2, 4, 8]), rows, cols)
        filters = draw.choice([8, 12, 16, 24, 32])
        model.convolution(filters, draw.choice([3, 3, 5, 7]), draw.choice([1, 1, 2]))
        kinds = [draw.choice(["plain", "residual", "separable", "inverted", "partial"])]
        if draw.random() < 0.4:
            kinds.append(draw.choice(["plain", "residual", "separable", "inverted"]))
        for _ in range(draw.randint(1, 4)):
            if draw.random() < 0.5:
                model.pool()
            else:
                model.convolution(filters, 3, 2)
            filters = min(filters * draw.choice([1, 2, 2]), 256)
            for _ in range(draw.randint(1, 3)):
                model.block(draw.choice(kinds), filters)
        tiled, smallest = model.layers, min(model.rows, model.cols)
        model.tail()
        if LEAST_MACS <= model.macs <= MOST_MACS and model.values <= MOST_VALUES and smallest >= 3:
            return "\n".join(model.text), tiled, smallest, model.batch


# ---- partitions ----


def drawn_partition(draw, devices, tiled, smallest, batch):
    """Options of `tessera plan`: a grid of the devices, perhaps of some only, groups, and what later layers do."""
    while True:
        rows, cols = draw.randint(1, devices), draw.randint(1, devices)
        if devices // 2 < rows * cols <= devices and max(rows, cols) <= smallest:
            break
    end = draw.randint(1, tiled)  # layers that are tiled
    options = f"--grid {rows}x{cols}"
    later = draw.choice(["tiles", "images", "images", "channels"])
    if later == "images" and batch < 2 or end == tiled:
        later = "tiles"
    if later == "tiles":
        end = tiled
    boundaries = sorted(draw.sample(range(1, end), draw.randint(0, end - 1))) if end > 1 else []
    firsts = [0, *boundaries]
    lasts = [first - 1 for first in boundaries] + [end - 1]
    options += " --groups " + ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(firsts, lasts))
    if later == "images":
        options += f" --data-parallel-from {end}"
    elif later == "channels":
        options += f" --filter-parallel-from {end}"
    return options


def layers_of(text):
    """How many layers of a model file are before its first [avgpool], [connected], [softmax], [yolo] or [yolox]."""
    sections = [line.strip() for line in text.splitlines() if line.startswith("[")][1:]
    ends = {"[avgpool]", "[connected]", "[softmax]", "[yolo]", "[yolox]"}
    return next((i for i, section in enumerate(sections) if section in ends), len(sections))


def as_drawn(text):
    """A model file as it was when the list was drawn."""
    return "".join(line for line in text.splitlines(True) if line.split("=")[0] not in LATER_KEYS)


def pairs():
    """All rows, and the texts of the networks by name."""
    root = pathlib.Path(__file__).resolve().parents[2]
    names = list(clusters())
    texts, groups = {}, []
    for number in range(NETWORKS):
        name = f"random-{number:02d}"
        texts[name], tiled, smallest, batch = drawn_model(number)
        draw = random.Random(f"{SEED} partitions {number}")
        groups.append((name, "own", batch, draw.choice(names), texts[name], tiled, smallest, draw))
    for name, size, batch in PUBLISHED:
        text = texts[name] = as_drawn((root / "models" / f"{name}.cfg").read_text())
        draw = random.Random(f"{SEED} clusters of {name} {size}")
        for cluster in sorted(draw.sample(names, CLUSTERS_OF_PUBLISHED)):
            groups.append((name, size, batch, cluster, text, layers_of(text), 3, draw))
    rows = []
    for place, (name, size, batch, cluster, text, tiled, smallest, draw) in enumerate(groups):
        devices = device_count(cluster)
        options = {"auto": "--partition auto"}
        if devices > 1:
            options |= {f"random-{i}": drawn_partition(draw, devices, tiled, smallest, batch) for i in range(RANDOM_PARTITIONS)}
        for partition, words in options.items():
            rows.append(
                {
                    "network": name,
                    "size": size,
                    "batch": batch,
                    "cluster": cluster,
                    "partition": partition,
                    "options": words,
                    "kept": "yes" if place % 3 == 2 else "no",
                    "model_sha256": hashlib.sha256(text.encode()).hexdigest()[:16],
                }
            )
    return rows, texts


def as_csv(rows):
    out = io.StringIO()
    writer = csv.DictWriter(out, FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog=__doc__.split("\n\n", 1)[1])
    parser.add_argument("--part", choices=["tuned", "kept", "all"], default="all", help="which pairs (default: all)")
    parser.add_argument("--models", metavar="DIR", type=pathlib.Path, help="write the model files of the networks here")
    parser.add_argument("--clusters", metavar="DIR", type=pathlib.Path, help="write descriptions of the clusters here")
    parser.add_argument("--tabs", action="store_true", help="print the rows with tabs between columns, without their names")
    parser.add_argument("--hash", action="store_true", help="print the SHA-256 of the list instead of the list")
    arguments = parser.parse_args()
    rows, texts = pairs()
    for folder, files in ((arguments.models, {f"{k}.cfg": v for k, v in texts.items()}),
                          (arguments.clusters, {f"{k}.devices": "\n".join(v) + "\n" for k, v in clusters().items()})):
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                (folder / name).write_text(text)
    wanted = {"tuned": "no", "kept": "yes"}.get(arguments.part)
    rows = [row for row in rows if wanted in (None, row["kept"])]
    text = as_csv(rows)
    if arguments.tabs:
        sys.stdout.write("".join("\t".join(str(row[field]) for field in FIELDS) + "\n" for row in rows))
        return
    sys.stdout.write(hashlib.sha256(text.encode()).hexdigest() + "\n" if arguments.hash else text)


if __name__ == "__main__":
    main()
