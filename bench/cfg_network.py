"""The network of a model file: its layers, and the shapes (C, H, W) of maps and parameters, for benches that build it in another program.

Keys and their defaults are those of partitioner/cfg. The model is one that `tessera` reads: what it refuses is not looked for here.
"""

import collections
import re

# Along one axis: cells of a filter, from one window to the next, cells of border before and after the map, from one tap to the next.
Window = collections.namedtuple("Window", "size stride before after dilation")
Norm = collections.namedtuple("Norm", "epsilon rate", defaults=(1e-5, 0.1))
Network = collections.namedtuple("Network", "net image layers")

ACTIVATED = {"convolutional": "logistic", "deconvolutional": "logistic", "connected": "logistic", "local": "logistic", "shortcut": "linear",
             "sam": "linear", "scale_channels": "linear"}  # kinds with an activation, and the one of a section that names none
HEADS = ("yolo", "yolox", "region", "detection")
LOSSES = (*HEADS, "softmax", "cost")
SAME_SHAPE = (*LOSSES, "dropout", "crop", "shortcut", "sam", "channel_shuffle")
STATISTICS = ("mean", "variance")  # parameters that are not learnt


def sections(path):
    """(name, {key: value}) of each."""
    found = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = re.sub("[#;].*", "", line).strip()
            if line.startswith("["):
                found.append((line.strip("[]"), {}))
            elif "=" in line:
                key, value = line.split("=", 1)
                found[-1][1][key.strip()] = value.strip()
    return found


class Layer:
    """A section, with the shapes of the maps that it reads: that of the layer before it first, then those that it names."""

    def __init__(self, kind, options, inputs, sources=(), norm=Norm()):
        self.kind = kind
        self.options = options
        self.inputs = inputs
        self.sources = sources  # layers whose maps are the inputs; -1: the image
        self.norm = norm
        self.activation = options.get("activation", ACTIVATED[kind]) if kind in ACTIVATED else "linear"
        self.normalized = kind in ("convolutional", "deconvolutional", "connected") and self.whole("batch_normalize", 0) == 1
        # Of rows and of columns.
        axis_window = {"convolutional": self.filter_window, "deconvolutional": self.filter_window, "maxpool": self.pool_window}.get(kind)
        self.windows = [axis_window(axis) for axis in "yx"] if axis_window else []
        self.output = self.output_shape()

    def whole(self, key, default):
        return int(self.options.get(key, default))

    def pools_channels(self):
        return self.kind == "maxpool" and self.whole("maxpool_depth", 0) == 1

    def stride(self):
        """Of kinds that have one for both axes."""
        return self.whole("stride", 1 if self.kind == "reorg" else 2)

    def pool_window(self, axis):
        size = self.whole("size", self.whole("stride", 1))
        both_ends = self.whole(f"padding_{axis}", self.whole("padding", size - 1))
        return Window(size, self.whole(f"stride_{axis}", self.whole("stride", 1)), both_ends // 2, both_ends - both_ends // 2, 1)

    def filter_window(self, axis):
        of_axis = lambda key, default: self.whole(f"{key}_{axis}", self.whole(key, default))
        size = of_axis("size", 1)
        before = size // 2 if self.whole("pad", 0) else of_axis("padding", 0)
        # Of filters of more than a cell, the padding is as dilated as they are.
        dilation = self.whole("dilation", 1) if self.kind == "convolutional" else 1
        return Window(size, of_axis("stride", 1), before * dilation, of_axis("padding_end", before) * dilation, dilation)

    def output_shape(self):
        channels, *extents = self.inputs[0]
        if self.pools_channels():
            return (self.whole("out_channels", 1), *extents)
        if self.kind in ("convolutional", "maxpool"):
            cells = [(extent + of.before + of.after - (of.size - 1) * of.dilation - 1) // of.stride + 1 for extent, of in zip(extents, self.windows)]
            return (channels if self.kind == "maxpool" else self.whole("filters", 1), *cells)
        if self.kind == "deconvolutional":
            cells = [(extent - 1) * of.stride + of.size - of.before - of.after for extent, of in zip(extents, self.windows)]
            return (self.whole("filters", 1), *cells)
        if self.kind == "upsample" or self.kind == "reorg" and self.whole("reverse", 0):
            return (channels if self.kind == "upsample" else channels // self.stride() ** 2, *(extent * self.stride() for extent in extents))
        if self.kind in ("reorg", "space_to_depth"):
            return (channels * self.stride() ** 2, *(extent // self.stride() for extent in extents))
        if self.kind == "avgpool":
            return (channels, 1, 1)
        if self.kind == "connected":
            return (self.whole("output", 1), 1, 1)
        if self.kind == "route":
            return (sum(shape[0] for shape in self.inputs) // self.whole("groups", 1), *extents)
        if self.kind == "scale_channels":
            return self.inputs[1]
        if self.kind in SAME_SHAPE:
            return self.inputs[0]
        raise SystemExit(f"[{self.kind}] is not supported here")

    def parameters(self):
        """{name: shape}; names are those of `tessera gradients`, without the "bn." that three of them begin with there."""
        channels, outputs = self.inputs[0][0], self.output[0]
        if self.kind in ("convolutional", "deconvolutional"):
            rows, cols = self.windows
            groups = self.whole("groups", 1) if self.kind == "convolutional" else 1
            shapes = {"weight": (outputs, channels // groups, rows.size, cols.size), "bias": (outputs,)}
        elif self.kind == "connected":
            channels, rows, cols = self.inputs[0]
            shapes = {"weight": (outputs, channels * rows * cols), "bias": (outputs,)}
        else:
            return {}
        return shapes | ({name: (outputs,) for name in ("scale", *STATISTICS)} if self.normalized else {})


def exported_name(index, name):
    """Of a parameter of a layer, for `tessera gradients`."""
    return f"layers.{index}.{'bn.' if name in ('scale', *STATISTICS) else ''}{name}"


def sources_of(index, kind, options):
    """The layers whose maps a layer reads; -1: the image."""
    named = [int(number) for number in options.get("layers" if kind == "route" else "from", "").split(",") if number.strip()]
    return ([] if kind == "route" else [index - 1]) + [number if number >= 0 else index + number for number in named]


def read_network(path, size=None):
    """`size`: "HxW" in place of the model's own."""
    (_, net), *found = sections(path)
    kind, options = found[0]
    # The network sees the window that a [crop] cuts out of pictures.
    own = (options["crop_height"], options["crop_width"]) if kind == "crop" else (net["height"], net["width"])
    image = (int(net.get("channels", 3)), *map(int, size.split("x") if size else own))
    norm = Norm(float(net.get("batch_norm_epsilon", Norm().epsilon)), float(net.get("batch_norm_rate", net.get("bn_rate", Norm().rate))))
    layers = []
    for index, (kind, options) in enumerate(found):
        sources = sources_of(index, kind, options)
        layers.append(Layer(kind, options, [layers[source].output if source >= 0 else image for source in sources], sources, norm))
    return Network(net, image, layers)
