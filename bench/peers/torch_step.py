#!/usr/bin/python3
"""Times a training step of a model file in PyTorch, as `tessera time` does: random pictures, forward, backward, SGD with momentum.

    bench/peers/torch_step.py MODEL.cfg --size 416x416 --batch 1 --threads 2 --steps 5 [--channels-last] [--json]

Needs Debian's python3-torch, and libopenblas0: some convolutions go to the machine's BLAS, and the one that Debian installs by
default is many times slower. The loss is the sum of the output, or of all inputs of [yolo], times a constant, or
cross-entropy where the network ends with [softmax]. bench/peers/run.sh starts it with glibc's allocator as it is and tuned.
"""

import argparse
import json
import pathlib
import re
import resource
import statistics
import sys
import time

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cfg_sections import sections  # noqa: E402

ACTIVATIONS = {
    "linear": lambda x: x,
    "relu": torch.relu,
    "relu6": nn.functional.relu6,
    "leaky": lambda x: nn.functional.leaky_relu(x, 0.1, inplace=True),
    "logistic": torch.sigmoid,
    "tanh": torch.tanh,
    "swish": nn.functional.silu,
    "mish": nn.functional.mish,
    "elu": nn.functional.elu,
}


def source_of(index, text):
    """The layer that a section names, from the first or back from itself."""
    source = int(text)
    return source if source >= 0 else index + source


class Shortcut(nn.Module):
    """Adds a map that may have other channels, or be larger by a whole number."""

    def __init__(self, shape, source_shape):
        super().__init__()
        self.step = source_shape[1] // shape[1]
        if self.step < 1:
            raise SystemExit("a [shortcut] from a smaller map is not supported here")
        self.channels = min(shape[0], source_shape[0])
        self.missing = shape[0] - self.channels

    def forward(self, x, source):
        if self.step > 1:
            source = source[:, :, :: self.step, :: self.step]
        if self.missing:
            source = nn.functional.pad(source, (0, 0, 0, 0, 0, self.missing))
        return x + source[:, : self.channels + self.missing]


class Network(nn.Module):
    """The layers of a model file in order; shortcuts and routes look back at earlier outputs."""

    def __init__(self, layers, shape):
        super().__init__()
        self.layers = layers
        self.modules_of = nn.ModuleList()
        shapes = []
        for index, (kind, options) in enumerate(layers):
            module, shape = self.build(index, kind, options, shape, shapes)
            self.modules_of.append(module)
            shapes.append(shape)

    @staticmethod
    def build(index, kind, options, shape, shapes):
        channels, height, width = shape
        whole = lambda key, default: int(options.get(key, default))
        if kind == "convolutional":
            filters, size, stride = whole("filters", 1), whole("size", 1), whole("stride", 1)
            padding = size // 2 if whole("pad", 0) else whole("padding", 0)
            normalize = whole("batch_normalize", 0)
            parts = [nn.Conv2d(channels, filters, size, stride, padding, groups=whole("groups", 1), bias=not normalize)]
            if normalize:
                parts.append(nn.BatchNorm2d(filters))
            out = lambda extent: (extent + 2 * padding - size) // stride + 1
            return nn.Sequential(*parts), (filters, out(height), out(width))
        if kind == "maxpool":
            stride = whole("stride", 1)
            size = whole("size", stride)
            padding = whole("padding", size - 1)
            before = padding // 2
            out = lambda extent: (extent + padding - size) // stride + 1
            after = lambda extent: max(0, (out(extent) - 1) * stride + size - before - extent)
            pad = (before, after(width), before, after(height))
            pool = nn.MaxPool2d(size, stride)
            if any(pad):
                pool = nn.Sequential(nn.ConstantPad2d(pad, float("-inf")), pool)
            return pool, (channels, out(height), out(width))
        if kind == "avgpool":
            return nn.AdaptiveAvgPool2d(1), (channels, 1, 1)
        if kind == "connected":
            outputs = whole("output", 1)
            parts = [nn.Linear(channels * height * width, outputs)]
            if whole("batch_normalize", 0):
                parts.append(nn.BatchNorm1d(outputs))
            return nn.Sequential(*parts), (outputs, 1, 1)
        if kind == "dropout":
            return nn.Dropout(float(options.get("probability", 0.5))), shape
        if kind == "shortcut":
            source = source_of(index, options["from"])
            return Shortcut(shape, shapes[source]), shape
        if kind == "route":
            sources = [source_of(index, i) for i in options["layers"].split(",")]
            return nn.Identity(), (sum(shapes[i][0] for i in sources) // whole("groups", 1), *shapes[sources[0]][1:])
        if kind == "upsample":
            return nn.Upsample(scale_factor=whole("stride", 2)), (channels, height * whole("stride", 2), width * whole("stride", 2))
        if kind in ("softmax", "cost", "crop", "yolo"):
            return nn.Identity(), shape
        raise SystemExit(f"[{kind}] is not supported here")

    def forward(self, x):
        outputs = []
        for index, ((kind, options), module) in enumerate(zip(self.layers, self.modules_of)):
            if kind == "connected":
                x = x.flatten(1)
            if kind == "shortcut":
                x = module(x, outputs[source_of(index, options["from"])])
            elif kind == "route":
                chosen = [outputs[source_of(index, i)] for i in options["layers"].split(",")]
                groups, group = int(options.get("groups", 1)), int(options.get("group_id", 0))
                chosen = [part.chunk(groups, 1)[group] for part in chosen]
                x = torch.cat(chosen, 1) if len(chosen) > 1 else chosen[0]
            else:
                x = module(x)
            default = {"convolutional": "logistic", "connected": "logistic"}.get(kind, "linear")
            x = ACTIVATIONS[options.get("activation", default)](x)
            outputs.append(x)
        heads = [output.flatten(1) for output, (kind, _) in zip(outputs, self.layers) if kind == "yolo"]
        return torch.cat(heads, 1) if heads else x


def blas():
    """The library that PyTorch multiplies matrices with; "reference" is the slow one."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        names = sorted({pathlib.Path(line.split()[-1]).name for line in maps if "/" in line})
    fast = [name for name in names if re.match(r"lib(openblas|blis|mkl|atlas)", name)]
    if fast:
        return fast[0]
    return "reference" if any(name.startswith("libblas.so") for name in names) else "its own"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?")
    parser.add_argument("--about", action="store_true", help="say versions and end")
    parser.add_argument("--size")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.about:
        print(f"PyTorch {torch.__version__}, BLAS: {blas()}")
        return
    if arguments.model is None:
        parser.error("which model?")
    torch.set_num_threads(arguments.threads)
    (_, net), *layers = sections(arguments.model)
    first, options = layers[0]
    height, width = (
        (int(options["crop_height"]), int(options["crop_width"])) if first == "crop" else (int(net["height"]), int(net["width"]))
    )
    if arguments.size:
        height, width = (int(n) for n in arguments.size.split("x"))
    shape = (int(net.get("channels", 3)), height, width)
    torch.manual_seed(1)
    network = Network(layers, shape).train()
    images = torch.rand(arguments.batch, *shape)
    if arguments.channels_last:
        network = network.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-4, momentum=0.9, weight_decay=5e-4)
    labels = torch.zeros(arguments.batch, dtype=torch.long)
    classifies = any(kind == "softmax" for kind, _ in layers)

    def step():
        optimizer.zero_grad(set_to_none=True)
        output = network(images)
        loss = nn.functional.cross_entropy(output.flatten(1), labels) if classifies else output.sum() * 1e-6
        loss.backward()
        optimizer.step()

    step()
    seconds = []
    for _ in range(arguments.steps):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    result = {
        "step_s": {"median": statistics.median(seconds), "min": min(seconds), "max": max(seconds)},
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    if arguments.json:
        print(json.dumps(result))
    else:
        print(f"step {1e3 * result['step_s']['median']:.1f} ms, peak {result['peak_bytes'] / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
