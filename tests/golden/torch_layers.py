"""The reference: each kind of layer in PyTorch, and the lines of a model file that mean the same.

A layer is described in terms of what it computes (a padding in cells, a source as an index); `text` writes the model
file's section from that, and nothing here ever reads a model file. Maps are (N, C, H, W).
"""

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

EPSILON = 1e-5
RATE = 0.1  # weight of the new batch in the running statistics

ACTIVATIONS = {
    "linear": lambda x: x,
    "relu": F.relu,
    "leaky": lambda x: F.leaky_relu(x, 0.1),
    "relu6": F.relu6,
    "elu": F.elu,
    "logistic": torch.sigmoid,
    "tanh": torch.tanh,
    "swish": F.silu,
    "mish": F.mish,
    "ramp": lambda x: x * (x > 0) + 0.1 * x,
}

# Where the derivative jumps.
KINKS = {"relu": [0.0], "leaky": [0.0], "relu6": [0.0, 6.0], "ramp": [0.0]}


@dataclass
class Run:
    """One forward pass: the maps so far, and how near it came to a kink or to a tie, relative to the largest value."""

    parameters: dict
    frozen: bool
    maps: list = field(default_factory=list)
    statistics: dict = field(default_factory=dict)
    margin: float = 1.0

    def approach(self, distance, x):
        largest = float(x.detach().abs().max())
        if distance.numel() and largest > 0:
            self.margin = min(self.margin, float(distance.detach().min()) / largest)

    def activate(self, name, x):
        for kink in KINKS.get(name, []):
            self.approach((x - kink).abs(), x)
        return ACTIVATIONS[name](x)

    def normalise(self, prefix, x):
        """Without its shift, which is the layer's bias, added by the caller."""
        scale, mean, variance = (
            self.parameters[f"{prefix}.bn.{name}"] for name in ("scale", "mean", "variance")
        )
        mean, variance = mean.detach().clone(), variance.detach().clone()
        if not self.frozen and x.numel() == x.shape[1]:  # F.batch_norm refuses one cell per channel
            value = x.detach().reshape(-1)
            mean = (1 - RATE) * mean + RATE * value
            variance = (1 - RATE) * variance  # the biased variance of one cell is 0
            per_channel = (1, -1) + (1,) * (x.dim() - 2)
            y = (x - x) / EPSILON**0.5 * scale.reshape(per_channel)
        else:
            y = F.batch_norm(x, mean, variance, scale, None, not self.frozen, RATE, EPSILON)
        self.statistics[f"{prefix}.bn.mean"] = mean
        self.statistics[f"{prefix}.bn.variance"] = variance
        return y


def section(name, **keys):
    lines = [f"[{name}]"] + [f"{key}={value}" for key, value in keys.items() if value is not None]
    return "\n".join(lines) + "\n"


def normalisation_parameters(channels):
    return {"bn.scale": (channels,), "bn.mean": (channels,), "bn.variance": (channels,)}


@dataclass
class Convolutional:
    filters: int
    size: int = 1
    stride: int = 1
    padding: int = 0
    groups: int = 1
    bn: bool = False
    activation: str = "linear"
    pad: bool = False  # write pad=1, which means size/2, in place of the padding
    overridden: int = None  # a padding to write beside pad=1, without effect

    def text(self):
        if self.pad:
            assert self.padding == self.size // 2
        return section(
            "convolutional",
            batch_normalize=1 if self.bn else None,
            filters=self.filters,
            size=self.size,
            stride=self.stride,
            groups=self.groups if self.groups > 1 else None,
            pad=1 if self.pad else None,
            padding=self.overridden if self.pad else (self.padding or None),
            activation=self.activation,
        )

    def parameters(self, channels, rows, cols):
        shapes = {
            "weight": (self.filters, channels // self.groups, self.size, self.size),
            "bias": (self.filters,),
        }
        return shapes | (normalisation_parameters(self.filters) if self.bn else {})

    def forward(self, run, prefix):
        weight, bias = run.parameters[f"{prefix}.weight"], run.parameters[f"{prefix}.bias"]
        x = F.conv2d(run.maps[-1], weight, None, self.stride, self.padding, 1, self.groups)
        if self.bn:
            x = run.normalise(prefix, x)
        return run.activate(self.activation or "logistic", x + bias.reshape(1, -1, 1, 1))


@dataclass
class Connected:
    outputs: int
    bn: bool = False
    activation: str = "linear"

    def text(self):
        return section(
            "connected",
            batch_normalize=1 if self.bn else None,
            output=self.outputs,
            activation=self.activation,
        )

    def parameters(self, channels, rows, cols):
        shapes = {"weight": (self.outputs, channels * rows * cols), "bias": (self.outputs,)}
        return shapes | (normalisation_parameters(self.outputs) if self.bn else {})

    def forward(self, run, prefix):
        x = F.linear(run.maps[-1].flatten(1), run.parameters[f"{prefix}.weight"])
        if self.bn:
            x = run.normalise(prefix, x)
        x = run.activate(self.activation or "logistic", x + run.parameters[f"{prefix}.bias"])
        return x.reshape(x.shape[0], self.outputs, 1, 1)


class WithoutParameters:
    def parameters(self, channels, rows, cols):
        return {}


@dataclass
class MaxPool(WithoutParameters):
    """`padding` is the total of both sides; the model file leaves it out where it is size - 1."""

    size: int
    stride: int
    padding: int = None
    write_size: bool = True  # False: the file leaves the size out, where it is the stride

    def text(self):
        size = self.size if self.write_size else None
        return section("maxpool", size=size, stride=self.stride, padding=self.padding)

    def forward(self, run, prefix):
        x = run.maps[-1]
        total = self.size - 1 if self.padding is None else self.padding
        before, after = total // 2, total - total // 2
        padded = F.pad(x, (before, after, before, after), value=-float("inf"))
        windows = padded.unfold(2, self.size, self.stride).unfold(3, self.size, self.stride)
        if self.size > 1:
            two = windows.flatten(4).topk(2).values
            # Zeros below a rectifier tie, but carry no gradient.
            harmless = (two[..., 0] == 0) & (two[..., 1] == 0)
            run.approach((two[..., 0] - two[..., 1])[~harmless], x)
        return F.max_pool2d(padded, self.size, self.stride)


class AvgPool(WithoutParameters):
    def text(self):
        return section("avgpool")

    def forward(self, run, prefix):
        return F.adaptive_avg_pool2d(run.maps[-1], 1)


@dataclass
class PassThrough(WithoutParameters):
    """What does nothing to the map in a vector-Jacobian product: dropout (off) and cost."""

    name: str
    keys: dict = field(default_factory=dict)

    def text(self):
        return section(self.name, **self.keys)

    def forward(self, run, prefix):
        return run.maps[-1]


@dataclass
class Softmax(WithoutParameters):
    groups: int = 1
    spatial: bool = False
    temperature: float = 1.0

    def text(self):
        return section(
            "softmax",
            groups=self.groups if self.groups > 1 else None,
            spatial=1 if self.spatial else None,
            temperature=self.temperature if self.temperature != 1 else None,
        )

    def forward(self, run, prefix):
        x = run.maps[-1]
        if self.spatial:
            return F.softmax(x / self.temperature, dim=1)
        runs = x.reshape(x.shape[0], self.groups, -1)
        return F.softmax(runs / self.temperature, dim=2).reshape(x.shape)


@dataclass
class Shortcut(WithoutParameters):
    source: int  # negative: counted back from this layer
    activation: str = "linear"
    alpha: float = None
    beta: float = None

    def text(self):
        return section(
            "shortcut",
            **{"from": self.source},
            activation=self.activation,
            alpha=self.alpha,
            beta=self.beta,
        )

    def forward(self, run, prefix):
        x, source = run.maps[-1], run.maps[self.source]
        channels = min(x.shape[1], source.shape[1])
        step_x = max(1, x.shape[2] // source.shape[2])
        step_source = max(1, source.shape[2] // x.shape[2])
        alpha = 1 if self.alpha is None else self.alpha
        beta = 1 if self.beta is None else self.beta
        added = source[:, :channels, ::step_source, ::step_source] * beta
        meets = torch.zeros_like(x)
        meets[:, :channels, ::step_x, ::step_x] = 1
        spread = torch.zeros_like(x)
        spread[:, :channels, ::step_x, ::step_x] = added
        return run.activate(self.activation, torch.where(meets > 0, alpha * x + spread, x))


@dataclass
class Route(WithoutParameters):
    sources: tuple  # negative: counted back from this layer; else counted from the first section
    groups: int = 1
    group: int = 0

    def text(self):
        return section(
            "route",
            layers=", ".join(str(source) for source in self.sources),
            groups=self.groups if self.groups > 1 else None,
            group_id=self.group if self.groups > 1 else None,
        )

    def forward(self, run, prefix):
        # maps[0] is the image.
        inputs = [run.maps[source if source < 0 else source + 1] for source in self.sources]
        return torch.cat([x.chunk(self.groups, 1)[self.group] for x in inputs], 1)


@dataclass
class Upsample(WithoutParameters):
    stride: int
    scale: float = None

    def text(self):
        return section("upsample", stride=self.stride, scale=self.scale)

    def forward(self, run, prefix):
        x = F.interpolate(run.maps[-1], scale_factor=self.stride, mode="nearest")
        return x if self.scale is None else x * self.scale


@dataclass
class Reorg(WithoutParameters):
    stride: int
    reverse: bool = False

    def text(self):
        return section("reorg", stride=self.stride, reverse=1 if self.reverse else None)

    def forward(self, run, prefix):
        x, s = run.maps[-1], self.stride
        n, c, h, w = x.shape
        if self.reverse:
            split = x.reshape(n, s, s, c // s**2, h, w)  # (n, dy, dx, c, row, col)
            return split.permute(0, 3, 4, 1, 5, 2).reshape(n, c // s**2, h * s, w * s)
        # The memory of (c, h, w) is taken for one of (c / s^2, h * s, w * s).
        split = x.reshape(n, c // s**2, h, s, w, s)  # (n, c, row, dy, col, dx)
        return split.permute(0, 3, 5, 1, 2, 4).reshape(n, c * s**2, h // s, w // s)


@dataclass
class SpaceToDepth(WithoutParameters):
    stride: int

    def text(self):
        return section("space_to_depth", stride=self.stride)

    def forward(self, run, prefix):
        x, s = run.maps[-1], self.stride
        n, c, h, w = x.shape
        split = x.reshape(n, c, h // s, s, w // s, s)
        return split.permute(0, 3, 5, 1, 2, 4).reshape(n, c * s**2, h // s, w // s)
