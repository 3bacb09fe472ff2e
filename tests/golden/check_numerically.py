#!/usr/bin/env python3
"""Checks golden files without PyTorch: a plain forward pass and numeric differentiation, standard library only.

    check_numerically.py [NAME...]

Reads NAME.cfg for itself. Outputs and running statistics have to agree within 1e-12; the gradient g of each tensor
with the slope of <output_gradient, output> along a random direction d, which is <g, d>, within 1e-6.
"""

import itertools
import math
import pathlib
import random
import sys

from safetensors_file import read_safetensors

FOLDER = pathlib.Path(__file__).parent
STEP = 1e-5
OUTPUT_BOUND = 1e-12
SLOPE_BOUND = 1e-6
TOO_SLOW = ("network_resnet", "network_yolo")  # unless asked for

ACTIVATIONS = {
    "linear": lambda x: x,
    "relu": lambda x: x if x > 0 else 0.0,
    "leaky": lambda x: x if x > 0 else 0.1 * x,
    "relu6": lambda x: min(max(x, 0.0), 6.0),
    "elu": lambda x: x if x > 0 else math.expm1(x),
    "logistic": lambda x: 1 / (1 + math.exp(-x)),
    "tanh": math.tanh,
    "swish": lambda x: x / (1 + math.exp(-x)),
    "mish": lambda x: x * math.tanh(math.log1p(math.exp(x))),
    "ramp": lambda x: max(x, 0.0) + 0.1 * x,
}


class Map:
    """(N, C, H, W) in one list."""

    def __init__(self, shape, values):
        self.shape, self.values = tuple(shape), values
        self.volume = math.prod(self.shape[1:])

    @staticmethod
    def made(shape, value_at):
        return Map(shape, [value_at(*at) for at in itertools.product(*map(range, shape))])

    def __call__(self, n, c, row, col):
        _, channels, rows, cols = self.shape
        return self.values[((n * channels + c) * rows + row) * cols + col]

    def holds(self, row, col):
        return 0 <= row < self.shape[2] and 0 <= col < self.shape[3]


def read_cfg(path):
    sections = []
    for line in path.read_text().split("\n"):
        if line.startswith("["):
            sections.append((line[1:-1], {}))
        elif line:
            key, value = line.split("=")
            sections[-1][1][key] = value
    return sections[1:]


def number(keys, name, default):
    return int(keys.get(name, default))


class Forward:
    def __init__(self, sections, tensors, frozen):
        self.tensors, self.frozen = tensors, frozen
        self.maps = [Map(*tensors["input"])]
        self.statistics = {}
        for index, (kind, keys) in enumerate(sections):
            self.prefix = f"layers.{index}."
            self.maps.append(getattr(self, kind)(keys, self.maps[-1]))

    def parameter(self, name):
        return self.tensors.get(self.prefix + name, (None, None))[1]

    def source(self, index):
        return self.maps[index if index < 0 else index + 1]

    def normalised(self, x):
        if self.parameter("bn.scale") is None:
            return x
        means, variances = list(self.parameter("bn.mean")), list(self.parameter("bn.variance"))
        n, channels, rows, cols = x.shape
        used = list(zip(means, variances))
        for c in range(0 if self.frozen else channels):
            cells = [x(*at) for at in itertools.product(range(n), [c], range(rows), range(cols))]
            mean = math.fsum(cells) / len(cells)
            deviation = math.fsum((cell - mean) ** 2 for cell in cells)
            used[c] = (mean, deviation / len(cells))
            means[c] = 0.9 * means[c] + 0.1 * mean
            variances[c] = 0.9 * variances[c] + 0.1 * deviation / max(1, len(cells) - 1)
        self.statistics[self.prefix + "bn.mean"] = means
        self.statistics[self.prefix + "bn.variance"] = variances
        factors = [
            scale / math.sqrt(variance + 1e-5)
            for scale, (_, variance) in zip(self.parameter("bn.scale"), used)
        ]
        return Map.made(x.shape, lambda n, c, i, j: (x(n, c, i, j) - used[c][0]) * factors[c])

    def finished(self, keys, x):
        bias, function = self.parameter("bias"), ACTIVATIONS[keys.get("activation", "logistic")]
        x = self.normalised(x)
        return Map.made(x.shape, lambda n, c, i, j: function(x(n, c, i, j) + bias[c]))

    def convolutional(self, keys, x):
        size, stride = number(keys, "size", 1), number(keys, "stride", 1)
        padding = size // 2 if number(keys, "pad", 0) else number(keys, "padding", 0)
        groups, filters = number(keys, "groups", 1), number(keys, "filters", 1)
        n, channels, rows, cols = x.shape
        depth, weight = channels // groups, self.parameter("weight")

        def value(n, k, i, j):
            total, top, left = 0.0, i * stride - padding, j * stride - padding
            first = k // (filters // groups) * depth
            for c, y, z in itertools.product(range(depth), range(size), range(size)):
                if x.holds(top + y, left + z):
                    at = ((k * depth + c) * size + y) * size + z
                    total += weight[at] * x(n, first + c, top + y, left + z)
            return total

        sides = ((side + 2 * padding - size) // stride + 1 for side in (rows, cols))
        return self.finished(keys, Map.made((n, filters, *sides), value))

    def connected(self, keys, x):
        weight, volume = self.parameter("weight"), x.volume

        def value(n, k, i, j):
            row = weight[k * volume : (k + 1) * volume]
            return sum(a * b for a, b in zip(row, x.values[n * volume : (n + 1) * volume]))

        return self.finished(keys, Map.made((x.shape[0], number(keys, "output", 1), 1, 1), value))

    def maxpool(self, keys, x):
        stride = number(keys, "stride", 1)
        size = number(keys, "size", stride)
        padding = number(keys, "padding", size - 1)

        def value(n, c, i, j):
            top, left = i * stride - padding // 2, j * stride - padding // 2
            window = itertools.product(range(top, top + size), range(left, left + size))
            return max(x(n, c, row, col) for row, col in window if x.holds(row, col))

        sides = ((side + padding - size) // stride + 1 for side in x.shape[2:])
        return Map.made((*x.shape[:2], *sides), value)

    def avgpool(self, keys, x):
        cells = list(itertools.product(range(x.shape[2]), range(x.shape[3])))
        mean = lambda n, c, i, j: math.fsum(x(n, c, *cell) for cell in cells) / len(cells)
        return Map.made((*x.shape[:2], 1, 1), mean)

    def dropout(self, keys, x):
        return x

    cost = dropout

    def softmax(self, keys, x):
        temperature, spatial = float(keys.get("temperature", 1)), number(keys, "spatial", 0)
        e = [math.exp(value / temperature) for value in x.values]
        if spatial:
            e = Map(x.shape, e)
            total = lambda n, i, j: sum(e(n, c, i, j) for c in range(x.shape[1]))
            return Map.made(x.shape, lambda n, c, i, j: e(n, c, i, j) / total(n, i, j))
        length = x.volume // number(keys, "groups", 1)
        totals = [sum(e[at : at + length]) for at in range(0, len(e), length)]
        return Map(x.shape, [value / totals[at // length] for at, value in enumerate(e)])

    def shortcut(self, keys, x):
        other, function = self.source(int(keys["from"])), ACTIVATIONS[keys["activation"]]
        alpha, beta = float(keys.get("alpha", 1)), float(keys.get("beta", 1))
        channels = min(x.shape[1], other.shape[1])
        sparse = max(1, x.shape[2] // other.shape[2])
        sampled = max(1, other.shape[2] // x.shape[2])

        def value(n, c, i, j):
            if c >= channels or i % sparse or j % sparse:
                return function(x(n, c, i, j))
            there = other(n, c, i // sparse * sampled, j // sparse * sampled)
            return function(alpha * x(n, c, i, j) + beta * there)

        return Map.made(x.shape, value)

    def route(self, keys, x):
        groups, group = number(keys, "groups", 1), number(keys, "group_id", 0)
        channels = []
        for other in (self.source(int(index)) for index in keys["layers"].split(",")):
            part = other.shape[1] // groups
            channels += [(other, c) for c in range(group * part, (group + 1) * part)]
        shape = (x.shape[0], len(channels), *channels[0][0].shape[2:])
        return Map.made(shape, lambda n, c, i, j: channels[c][0](n, channels[c][1], i, j))

    def upsample(self, keys, x):
        s, scale = number(keys, "stride", 2), float(keys.get("scale", 1))
        n, channels, rows, cols = x.shape
        return Map.made(
            (n, channels, rows * s, cols * s), lambda n, c, i, j: scale * x(n, c, i // s, j // s)
        )

    def reorg(self, keys, x):
        s, reverse = number(keys, "stride", 2), number(keys, "reverse", 0)
        n, c, h, w = x.shape
        deep, out = c // s**2, [0.0] * len(x.values)
        for n, k, j, i in itertools.product(range(n), range(c), range(h), range(w)):
            here = i + w * (j + h * (k + c * n))
            col, row = i * s + k // deep % s, j * s + k // deep // s
            there = col + w * s * (row + h * s * (k % deep + deep * n))
            to, source = (there, here) if reverse else (here, there)
            out[to] = x.values[source]
        shape = (deep, h * s, w * s) if reverse else (c * s**2, h // s, w // s)
        return Map((x.shape[0], *shape), out)

    def space_to_depth(self, keys, x):
        s = number(keys, "stride", 2)
        n, channels, h, w = x.shape

        def value(n, k, i, j):
            offset, c = divmod(k, channels)
            return x(n, c, i * s + offset // s, j * s + offset % s)

        return Map.made((n, channels * s**2, h // s, w // s), value)


def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b))


def difference(found, expected):
    largest = max(map(abs, expected)) or 1.0
    return max(abs(a - b) for a, b in zip(found, expected, strict=True)) / largest


def slope_error(run, tensors, name, gradient, draw):
    """Relative to the product of the lengths of gradient and direction."""
    shape, values = tensors[name]
    direction = [draw.gauss(0, 1) for _ in values]

    def at(step):
        moved = [value + step * d for value, d in zip(values, direction)]
        return dot(run(tensors | {name: (shape, moved)}), tensors["output_gradient"][1])

    slope = (at(STEP) - at(-STEP)) / (2 * STEP)
    scale = math.sqrt(dot(gradient, gradient) * dot(direction, direction)) or 1.0
    return abs(slope - dot(gradient, direction)) / scale


def check_case(name):
    tensors = read_safetensors(FOLDER / f"{name}.safetensors")
    sections, frozen = read_cfg(FOLDER / f"{name}.cfg"), name.startswith("frozen_")
    expected = {
        tensor.removeprefix("expected."): values
        for tensor, (_, values) in tensors.items()
        if tensor.startswith("expected.")
    }
    forward = Forward(sections, tensors, frozen)
    found = forward.statistics | {"output": forward.maps[-1].values}
    output = max(difference(found[tensor], expected[tensor]) for tensor in found)
    draw = random.Random(name)
    slope = max(
        slope_error(
            lambda moved: Forward(sections, moved, frozen).maps[-1].values,
            tensors,
            "input" if tensor == "input_gradient" else tensor,
            gradient,
            draw,
        )
        for tensor, gradient in expected.items()
        if tensor not in found
    )
    failed = not (output <= OUTPUT_BOUND and slope <= SLOPE_BOUND)
    print(f"{name:40} outputs {output:.0e}  slopes {slope:.0e}{'  DIFFERS' if failed else ''}")
    return failed


def main():
    names = sys.argv[1:] or sorted(
        path.stem
        for path in FOLDER.glob("*.safetensors")
        if not path.stem.startswith(("darknet_", *TOO_SLOW))
    )
    sys.exit(1 if sum([check_case(name) for name in names]) else 0)


if __name__ == "__main__":
    main()
