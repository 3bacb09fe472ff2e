"""The layers of a model file in PyTorch, for benches beside it, and the comparison of what both programs compute.

Maps are (N, C, H, W); the parameters of a layer are an object with the attributes weight, bias, scale, mean, variance.
"""

import json
import math
import pathlib
import struct
import subprocess
import tempfile

import numpy
import torch
from torch import nn
from torch.nn import functional

from cfg_network import HEADS, LOSSES, STATISTICS, exported_name, read_network, sections

ACTIVATIONS = {
    "linear": lambda x: x,
    "relu": functional.relu,
    "relu6": functional.relu6,
    "leaky": lambda x: functional.leaky_relu(x, 0.1, inplace=True),
    "ramp": lambda x: functional.relu(x) + 0.1 * x,
    "elu": functional.elu,
    "logistic": torch.sigmoid,
    "tanh": torch.tanh,
    "swish": functional.silu,
    "silu": functional.silu,
    "mish": functional.mish,
    "hard_mish": lambda x: x * torch.clamp(x / 2 + 1, 0, 1),
    "gelu": lambda x: functional.gelu(x, approximate="tanh"),
    "hard_sigmoid": functional.hardsigmoid,
    "hard_swish": functional.hardswish,
}


# ---- what a layer of each kind computes before its activation: functions of its inputs and parameters, made before anything is timed ----


def normalization(layer):
    epsilon, rate = layer.norm
    if not layer.normalized:
        return lambda x, _: x
    return lambda x, values: functional.batch_norm(x, values.mean, values.variance, values.scale, values.bias, True, rate, epsilon)


def bias_of(layer):
    return (lambda values: None) if layer.normalized else lambda values: values.bias


def padding(windows, value=0.0):
    rows, cols = windows
    return lambda x: functional.pad(x, (cols.before, cols.after, rows.before, rows.after), value=value)


def convolutional(layer):
    _, stride, before, after, dilation = zip(*layer.windows)
    pad, around = (None, before) if before == after else (padding(layer.windows), 0)
    normalize, bias, groups = normalization(layer), bias_of(layer), layer.whole("groups", 1)

    def forward(inputs, values):
        x = inputs[0] if pad is None else pad(inputs[0])
        return normalize(functional.conv2d(x, values.weight, bias(values), stride, around, dilation, groups), values)

    return forward


def deconvolutional(layer):
    _, stride, before, after, _ = zip(*layer.windows)
    # PyTorch leaves out as much at either end.
    around = [max(0, min(ends)) for ends in zip(before, after)]
    more = [max(0, -end) for end in after]
    rows, cols = (slice(begin - both, begin - both + cells) for begin, both, cells in zip(before, around, layer.output[1:]))
    normalize, bias = normalization(layer), bias_of(layer)
    return lambda inputs, values: normalize(
        functional.conv_transpose2d(inputs[0], values.weight, bias(values), stride, around, more)[:, :, rows, cols], values)


def connected(layer):
    normalize, bias = normalization(layer), bias_of(layer)
    return lambda inputs, values: normalize(functional.linear(inputs[0].flatten(1), values.weight, bias(values)), values)[:, :, None, None]


def maxpool(layer):
    if layer.pools_channels():
        outputs = layer.output[0]
        missing = (0, 0, 0, 0, 0, -layer.inputs[0][0] % outputs)
        return lambda inputs, _: functional.pad(inputs[0], missing, value=float("-inf")).unflatten(1, (-1, outputs)).max(1).values
    of_axes = list(zip(layer.windows, layer.inputs[0][1:], layer.output[1:]))
    size, stride, before, _, _ = zip(*layer.windows)
    # PyTorch pads either end alike, and by half a window at most.
    if all(2 * of.before <= of.size and (extent + 2 * of.before - of.size) // of.stride + 1 == cells for of, extent, cells in of_axes):
        return lambda inputs, _: functional.max_pool2d(inputs[0], size, stride, before)
    reached = [of._replace(after=max(0, (cells - 1) * of.stride + of.size - of.before - extent)) for of, extent, cells in of_axes]
    pad = padding(reached, float("-inf"))
    return lambda inputs, _: functional.max_pool2d(pad(inputs[0]), size, stride)


def avgpool(_):
    return lambda inputs, _: functional.adaptive_avg_pool2d(inputs[0], 1)


def shortcut(layer):
    (channels, height, _), (source_channels, source_height, _), *_ = layer.inputs
    step, both = source_height // height, min(channels, source_channels)
    if step < 1:
        raise SystemExit("a [shortcut] from a smaller map is not supported here")
    alpha, beta = (float(layer.options.get(key, 1)) for key in ("alpha", "beta"))
    scaled = lambda x, factor: x if factor == 1 else factor * x
    cells = (slice(None), slice(both), slice(None, None, step), slice(None, None, step))
    whole = all(shape == layer.output for shape in layer.inputs)

    def forward(inputs, _):
        x = scaled(inputs[0] if whole else inputs[0][:, :both], alpha)
        for source in inputs[1:]:
            x = x + scaled(source if whole else source[cells], beta)
        return x if both == channels else torch.cat([x, inputs[0][:, both:]], 1)

    return forward


def product(_):
    return lambda inputs, _: inputs[0] * inputs[1]


def route(layer):
    groups, group = layer.whole("groups", 1), layer.whole("group_id", 0)
    slices = [slice(shape[0] // groups * group, shape[0] // groups * (group + 1)) for shape in layer.inputs]
    parts = (lambda inputs: inputs) if groups == 1 else lambda inputs: [x[:, of_group] for x, of_group in zip(inputs, slices)]
    return (lambda inputs, _: parts(inputs)[0]) if len(slices) == 1 else lambda inputs, _: torch.cat(parts(inputs), 1)


def upsample(layer):
    stride, scale = layer.stride(), float(layer.options.get("scale", 1))
    mode = {"mode": "bilinear", "align_corners": False} if layer.options.get("mode") == "bilinear" else {"mode": "nearest"}
    scaled = (lambda x: x) if scale == 1 else lambda x: scale * x
    return lambda inputs, _: scaled(functional.interpolate(inputs[0], scale_factor=stride, **mode))


def reorg(layer):
    """The memory of (C, H, W) is taken for that of the map of which it is the space-to-depth, with channels in another order."""
    stride, (channels, height, width) = layer.stride(), layer.output
    if layer.whole("reverse", 0):
        return lambda inputs, _: inputs[0].unflatten(1, (stride, stride, channels)).permute(0, 3, 4, 1, 5, 2).reshape(-1, *layer.output)
    taken_for = (channels // stride**4, height * stride, stride, width * stride, stride)
    return lambda inputs, _: inputs[0].reshape(-1, *taken_for).permute(0, 3, 5, 1, 2, 4).reshape(-1, *layer.output)


def space_to_depth(layer):
    stride, (channels, height, width) = layer.stride(), layer.output
    split = (channels // stride**2, height, stride, width, stride)
    return lambda inputs, _: inputs[0].reshape(-1, *split).permute(0, 3, 5, 1, 2, 4).reshape(-1, *layer.output)


def channel_shuffle(layer):
    groups = layer.whole("groups", 2)
    return lambda inputs, _: inputs[0].unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2)


def dropout(layer):
    probability = float(layer.options.get("probability", 0.5))
    return lambda inputs, _: functional.dropout(inputs[0], probability)


def passed_on(_):
    """Also of losses, which are not computed here."""
    return lambda inputs, _: inputs[0]


KINDS = {
    "convolutional": convolutional,
    "deconvolutional": deconvolutional,
    "connected": connected,
    "maxpool": maxpool,
    "avgpool": avgpool,
    "shortcut": shortcut,
    "sam": product,
    "scale_channels": product,
    "route": route,
    "upsample": upsample,
    "reorg": reorg,
    "space_to_depth": space_to_depth,
    "channel_shuffle": channel_shuffle,
    "dropout": dropout,
    "crop": passed_on,
    "softmax": passed_on,
    "cost": passed_on,
    "yolo": passed_on,
    "yolox": passed_on,
}


def forward_of(layer):
    """What a layer computes, of the list of its inputs and of its parameters."""
    if layer.kind not in KINDS:
        raise SystemExit(f"[{layer.kind}] is not supported here")
    if layer.activation not in ACTIVATIONS:
        raise SystemExit(f"activation={layer.activation} is not supported here")
    compute, activate = KINDS[layer.kind](layer), ACTIVATIONS[layer.activation]
    return lambda inputs, values: activate(compute(inputs, values))


def exchanged(layer, name, values):
    """Values of a parameter as PyTorch has them, for those as `tessera` has them, and the other way round."""
    return values.transpose(0, 1).contiguous() if layer.kind == "deconvolutional" and name == "weight" else values


# ---- whole networks ----


class LayerModule(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.compute = forward_of(layer)
        for name, shape in layer.parameters().items():
            values = exchanged(layer, name, start_values(name, shape))
            if name in STATISTICS:
                self.register_buffer(name, values)
            else:
                self.register_parameter(name, nn.Parameter(values))

    def forward(self, inputs):
        return self.compute(inputs, self)


def start_values(name, shape):
    if name in ("scale", "variance"):
        return torch.ones(shape)
    if name != "weight":
        return torch.zeros(shape)
    return (2 * torch.rand(shape) - 1) * math.prod(shape[1:]) ** -0.5


class Network(nn.Module):
    """Layers in order. The output is that of the last layer, or what all [yolo] and [yolox] read, an image in a row."""

    def __init__(self, network):
        super().__init__()
        if network.net.get("batch_norm_rule", "pytorch") != "pytorch":
            raise SystemExit(f"batch_norm_rule={network.net['batch_norm_rule']} is not supported here")
        self.modules_of = nn.ModuleList(LayerModule(layer) for layer in network.layers)

    def forward(self, image):
        outputs = [image]
        for module in self.modules_of:
            outputs.append(module([outputs[source + 1] for source in module.layer.sources]))
        heads = [output.flatten(1) for output, module in zip(outputs[1:], self.modules_of) if module.layer.kind in ("yolo", "yolox")]
        return torch.cat(heads, 1) if heads else outputs[-1]


# ---- the comparison ----


def write_safetensors(path, tensors):
    header, end, data = {}, 0, []
    for name, tensor in tensors.items():
        values = numpy.ascontiguousarray(tensor.detach().numpy())
        data.append(values.tobytes())
        header[name] = {"dtype": f"F{8 * values.itemsize}", "shape": list(values.shape), "data_offsets": [end, end + len(data[-1])]}
        end += len(data[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))


def read_safetensors(path):
    content = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    found = {}
    for name, entry in json.loads(content[8 : 8 + length]).items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            found[name] = numpy.frombuffer(content[begin:end], {"F32": "<f4", "F64": "<f8"}[entry["dtype"]]).reshape(entry["shape"])
    return found


NORM_KEYS = ("batch_norm_rule", "batch_norm_epsilon", "batch_norm_rate", "bn_rate")


def comparable_text(path, size=None):
    """The model file without losses and what is random, and with one end: the means of the maps that its heads read, where there are several."""
    text, heads = "", []
    for index, (kind, options) in enumerate(sections(path), -1):
        if index < 0:
            options = {key: value for key, value in options.items() if key in ("channels", "height", "width", *NORM_KEYS)}
            options.update(zip(("height", "width"), size.split("x") if size else ()))
        if kind == "crop":
            options.update(zip(("crop_height", "crop_width"), size.split("x") if size else ()))
        if kind in LOSSES or kind == "dropout":
            heads += [index] if kind in HEADS else []
            kind, options = "route", {"layers": -1}
        text += f"[{kind}]\n" + "".join(f"{key}={value}\n" for key, value in options.items())
    if len(heads) > 1:
        means = [index + 2 * (place + 1) for place in range(len(heads))]
        text += "".join(f"[route]\nlayers={head}\n[avgpool]\n" for head in heads) + f"[route]\nlayers={','.join(map(str, means))}\n"
    return text


def random_values(name, shape):
    return torch.rand(shape) + (1 if name == "variance" else -0.5)


def computed(described, batch, dtype):
    """What PyTorch computes of random values: those that `tessera gradients` reads and those that it writes, by its names."""
    network = Network(described)
    places = [(exported_name(index, name), layer, module, name) for index, (layer, module) in enumerate(zip(described.layers, network.modules_of))
              for name in layer.parameters()]
    given = {"input": 2 * torch.rand(batch, *described.image) - 1}
    for exported, layer, module, name in places:
        given[exported] = random_values(name, layer.parameters()[name])
        getattr(module, name).data.copy_(exchanged(layer, name, given[exported]))
    network.to(dtype)
    image = given["input"].to(dtype).requires_grad_(True)
    output = network(image)
    given["output_gradient"] = 2 * torch.rand(output.shape) - 1
    output.backward(given["output_gradient"].to(dtype))
    results = {"output": output, "input_gradient": image.grad}
    for exported, layer, module, name in places:
        values = getattr(module, name)
        results[exported] = exchanged(layer, name, values if name in STATISTICS else values.grad)
    return given, results


def expect_same(program, model, batch, precision, most_error):
    """Ends the program unless `tessera gradients` and PyTorch compute the same output, gradients and statistics, but for rounding.

    `model` has no losses; `most_error` is of the Euclidean norm of a difference by that of what PyTorch computes.
    """
    given, wanted = computed(read_network(model), batch, {"single": torch.float32, "double": torch.float64}[precision])
    with tempfile.TemporaryDirectory() as folder:
        write_safetensors(f"{folder}/in", given)
        command = [program, "gradients", model, "--in", f"{folder}/in", "--out", f"{folder}/out", "--precision", precision]
        if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode != 0:
            raise SystemExit(f"{program} cannot compute {model}")
        found = read_safetensors(f"{folder}/out")
    if found.keys() != wanted.keys():
        raise SystemExit(f"{model}: only one program computes {', '.join(sorted(found.keys() ^ wanted.keys()))}")
    # Sums that cancel, such as a bias's gradient below a normalisation, are rounding errors.
    least = 1e-6 * max(float(tensor.norm()) for tensor in wanted.values())
    for name, tensor in wanted.items():
        expected = tensor.detach().numpy().astype("f8")
        if found[name].shape != expected.shape:
            raise SystemExit(f"{model}: {name} has the shape {found[name].shape}, in PyTorch {expected.shape}")
        error = numpy.linalg.norm(found[name] - expected) / max(numpy.linalg.norm(expected), least)
        if not error <= most_error:
            raise SystemExit(f"{pathlib.Path(model).read_text(encoding='utf-8')}\n{name} is off by {error:.1e}")
