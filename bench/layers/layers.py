#!/usr/bin/python3
"""Times single layers beside PyTorch's: forward and backward of each layer of layers.csv, one thread, in turn.

run.sh starts it, and README.md says what is measured.
"""

import os

# Before PyTorch is loaded. The allocator is to keep what a step frees: glibc's own returns it to the system and takes it again, page by page.
TUNED = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "8589934592", "MALLOC_TRIM_THRESHOLD_": "8589934592",
         "MALLOC_TOP_PAD_": "67108864"}
if any(os.environ.get(name) != value for name, value in TUNED.items()):
    os.execve("/proc/self/exe", ["python3", *os.sys.argv], {**os.environ, **TUNED})

import argparse
import csv
import itertools
import json
import pathlib
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import numpy
import torch
from torch.nn import functional

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SHIM_CHANNELS = 8  # of the image that convolutions make the maps of a layer with several inputs from
MOST_ERROR = 1e-3  # Euclidean norm of the difference by that of PyTorch's: Winograd's rounding, and signs of activations that flip with it
FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
COLUMNS = ["network", "layer", "count", "maps", "section", "batch", "forward_s", "backward_s", "torch_forward_s", "torch_backward_s", "torch_format",
           "times", "times_forward", "times_backward"]

ACTIVATIONS = {
    "linear": lambda x: x,
    "relu": functional.relu,
    "relu6": functional.relu6,
    "leaky": lambda x: functional.leaky_relu(x, 0.1),
    "logistic": torch.sigmoid,
    "swish": functional.silu,
    "mish": functional.mish,
    "hard_mish": lambda x: x * torch.clamp(x / 2 + 1, 0, 1),
}


class Layer:
    """A row of layers.csv."""

    def __init__(self, row):
        self.kind, *options = row["section"].split()
        self.kind = self.kind.strip("[]")
        self.options = dict(option.split("=") for option in options)
        self.inputs = [tuple(map(int, shape.split("x"))) for shape in row["maps"].split("+")]
        # That of the image is nobody's.
        self.input_gradient = row["layer"] != "0" or row["network"] == "others"
        self.activation = self.options.get("activation", "logistic" if self.kind == "convolutional" else "linear")

    def whole(self, key, default):
        return int(self.options.get(key, default))

    def normalized(self):
        return self.whole("batch_normalize", 0) == 1

    def parameters(self):
        """Their names and shapes, of the layer by itself."""
        if self.kind != "convolutional":
            return {}
        filters, size = self.whole("filters", 1), self.whole("size", 1)
        shapes = {"weight": (filters, self.inputs[0][0] // self.whole("groups", 1), size, size), "bias": (filters,)}
        if self.normalized():
            shapes.update({"bn.scale": (filters,), "bn.mean": (filters,), "bn.variance": (filters,)})
        return shapes

    def network(self):
        """A model file whose last layer this is, and the shapes of its parameters by name."""
        if len(self.inputs) == 1 and self.kind != "shortcut":
            channels, height, width = self.inputs[0]
            text, index, section = "", 0, dict(self.options)
            if self.kind == "route":
                text, index = f"[convolutional]\nfilters={channels}\nsize=1\nactivation=linear\n", 1
                section["layers"] = "-1"
        else:
            text, index, places = "", 0, {}
            height, width = max(shape[1:] for shape in self.inputs)
            # The one that the layer follows comes last.
            for number in [*range(1, len(self.inputs)), 0]:
                filters = self.inputs[number][0]
                text += f"[convolutional]\nfilters={filters}\nsize=1\nactivation=linear\n"
                places[number] = index
                index += 1
                if self.inputs[number][1:] != (height, width):
                    text += "[avgpool]\n"
                    places[number] = index
                    index += 1
            section = dict(self.options)
            if self.kind == "route":
                section["layers"] = ",".join(str(places[number]) for number in range(len(self.inputs)))
            else:
                section["from"] = ",".join(str(places[number]) for number in range(1, len(self.inputs)))
        self.image = (SHIM_CHANNELS if index else self.inputs[0][0], height, width)
        shapes, channels = {}, self.image[0]
        for layer, filters in enumerate(re.findall(r"filters=(\d+)|\[avgpool\]", text)):
            if filters:
                shapes[f"layers.{layer}.weight"] = (int(filters), channels, 1, 1)
                shapes[f"layers.{layer}.bias"] = (int(filters),)
                channels = int(filters)
        shapes.update({f"layers.{index}.{name}": shape for name, shape in self.parameters().items()})
        self.index = index
        self.shims = text
        net = f"[net]\nbatch=1\nheight={height}\nwidth={width}\nchannels={self.image[0]}\n"
        return net + text + f"[{self.kind}]\n" + "".join(f"{key}={value}\n" for key, value in section.items()), shapes

    def __call__(self, inputs, parameters):
        """PyTorch's."""
        x, *more = inputs
        if self.kind == "convolutional":
            size, dilation = self.whole("size", 1), self.whole("dilation", 1)
            padding = (size - 1) * dilation // 2 if size % 2 and self.whole("pad", 0) else size // 2 if self.whole("pad", 0) else self.whole("padding", 0)
            bias = None if self.normalized() else parameters["bias"]
            x = functional.conv2d(x, parameters["weight"], bias, self.whole("stride", 1), padding, dilation, self.whole("groups", 1))
            if self.normalized():
                x = functional.batch_norm(x, parameters["bn.mean"], parameters["bn.variance"], parameters["bn.scale"], parameters["bias"], True, 0.1, 1e-5)
        elif self.kind == "maxpool":
            x = self.max_pool(x)
        elif self.kind == "avgpool":
            x = functional.adaptive_avg_pool2d(x, 1)
        elif self.kind == "upsample":
            x = functional.interpolate(x, scale_factor=self.whole("stride", 2), mode="nearest")
        elif self.kind == "route" and more:
            x = torch.cat(inputs, 1)
        elif self.kind == "route":
            part = x.shape[1] // self.whole("groups", 1)
            # A view would leave the copy to the layer after it.
            x = x[:, part * self.whole("group_id", 0) : part * (self.whole("group_id", 0) + 1)].clone()
        elif self.kind in ("scale_channels", "sam"):
            x = x * more[0]
        elif self.kind == "shortcut":
            for other in more:
                both = min(x.shape[1], other.shape[1])
                if both < x.shape[1]:
                    other = functional.pad(other, (0, 0, 0, 0, 0, x.shape[1] - both))
                x = x + other[:, : x.shape[1]]
        else:
            raise SystemExit(f"[{self.kind}] is not known here")
        return ACTIVATIONS[self.activation](x)

    def max_pool(self, x):
        stride = self.whole("stride", 1)
        size = self.whole("size", stride)
        around = self.whole("padding", size - 1)
        before = around // 2
        after = [max(0, ((extent + around - size) // stride) * stride + size - before - extent) for extent in x.shape[2:]]
        if after == [before, before]:
            return functional.max_pool2d(x, size, stride, before)
        if before or any(after):
            x = functional.pad(x, (before, after[1], before, after[0]), value=float("-inf"))
        return functional.max_pool2d(x, size, stride)

    def whole_network(self, image, parameters):
        """PyTorch's, from the image through the convolutions that make the layer's inputs."""
        outputs, x = [], image
        for layer, section in enumerate(re.findall(r"\[\w+\]", self.shims)):
            if section == "[avgpool]":
                x = functional.adaptive_avg_pool2d(x, 1)
            else:
                x = functional.conv2d(x, parameters[f"layers.{layer}.weight"], parameters[f"layers.{layer}.bias"])
            outputs.append(x)
        if not outputs:
            inputs = [image]
        else:
            # As network() orders them; of a convolution and its [avgpool] the latter.
            kinds = re.findall(r"\[\w+\]", self.shims)
            ends = [output for i, output in enumerate(outputs) if kinds[i + 1 : i + 2] != ["[avgpool]"] or len(self.inputs) == 1]
            inputs = [ends[-1], *ends[:-1]]
            if self.kind == "scale_channels":
                inputs = [outputs[-1], outputs[0]]
        prefix = f"layers.{self.index}."
        return self(inputs, {name[len(prefix) :]: value for name, value in parameters.items() if name.startswith(prefix)})


def write_safetensors(path, tensors):
    header, end, data = {}, 0, []
    for name, values in tensors.items():
        data.append(numpy.ascontiguousarray(values, dtype="<f4").tobytes())
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [end, end + len(data[-1])]}
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
            found[name] = numpy.frombuffer(content[begin:end], "<f4").reshape(entry["shape"])
    return found


def random_parameters(shapes):
    return {name: (1 + torch.rand(shape) if name.endswith("variance") else torch.rand(shape) - 0.5) for name, shape in shapes.items()}


def check(layer, model, shapes, batch, program, folder):
    """Throws unless both programs compute the same output and gradients, but for rounding."""
    parameters = random_parameters(shapes)
    image = (2 * torch.rand(batch, *layer.image) - 1).requires_grad_(True)
    learnt = {name: value.requires_grad_(True) for name, value in parameters.items() if not name.endswith(("mean", "variance"))}
    inputs = {name: value.detach().numpy().copy() for name, value in {"input": image, **parameters}.items()}
    output = layer.whole_network(image, parameters)
    gradient = 2 * torch.rand(output.shape) - 1
    output.backward(gradient)
    wanted = {"output": output, "input_gradient": image.grad, **{name: value.grad for name, value in learnt.items()}}
    write_safetensors(folder / "in.safetensors", {**inputs, "output_gradient": gradient.numpy()})
    subprocess.run([program, "gradients", model, "--in", folder / "in.safetensors", "--out", folder / "out.safetensors", "--precision", "single"], check=True,
                   stdout=subprocess.DEVNULL)
    found = read_safetensors(folder / "out.safetensors")
    for name, tensor in wanted.items():
        expected = tensor.detach().numpy().astype("f8")
        error = numpy.linalg.norm(found[name].reshape(expected.shape) - expected) / max(numpy.linalg.norm(expected), 1e-30)
        if not error <= MOST_ERROR:
            raise SystemExit(f"{model.read_text()}: {name} is off by {error:.1e}")


class TorchSteps:
    """The layer by itself, in a memory format."""

    def __init__(self, layer, batch, memory_format):
        self.layer = layer
        self.parameters = random_parameters(layer.parameters())
        self.parameters = {name: value.to(memory_format=memory_format) if value.dim() == 4 else value for name, value in self.parameters.items()}
        self.leaves = [value.requires_grad_(True) for name, value in self.parameters.items() if name not in ("bn.mean", "bn.variance")]
        self.inputs = [(2 * torch.rand(batch, *shape) - 1).to(memory_format=memory_format) for shape in layer.inputs]
        if layer.input_gradient:
            self.leaves += [x.requires_grad_(True) for x in self.inputs]
        output = layer(self.inputs, self.parameters)
        self.gradient = (2 * torch.rand(output.shape) - 1).to(memory_format=memory_format)

    def run(self, steps):
        seconds = []
        for _ in range(steps):
            for leaf in self.leaves:
                leaf.grad = None
            begin = time.perf_counter()
            output = self.layer(self.inputs, self.parameters)
            middle = time.perf_counter()
            output.backward(self.gradient)
            end = time.perf_counter()
            seconds.append((middle - begin, end - middle))
        return seconds


class OwnSteps:
    def __init__(self, program, model, batch, image_gradient):
        command = [program, model, "--batch", str(batch), *(["--image-gradient"] if image_gradient else [])]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, steps):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        numbers = list(map(float, self.process.stdout.readline().split()))
        if len(numbers) != 2 * steps:
            raise SystemExit("layer_steps ended")
        return list(zip(numbers[::2], numbers[1::2]))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def least(seconds):
    """Of steps of one turn: those that nothing else on the machine has come between."""
    return tuple(min(part) for part in zip(*seconds))


def measure(layer, model, batch, program, seconds, rounds):
    own = OwnSteps(program, model, batch, layer.input_gradient)
    peers = {"own": own, **{name: TorchSteps(layer, batch, memory_format) for name, memory_format in FORMATS.items()}}
    steps = {}
    for name, peer in peers.items():
        peer.run(2)
        took = sum(least(peer.run(3)))
        steps[name] = max(3, min(200, round(seconds / rounds / 3 / max(took, 1e-7))))
    turns = {name: [] for name in peers}
    for _ in range(rounds):
        for name, peer in peers.items():
            turns[name].append(least(peer.run(steps[name])))
    own.close()
    median = {name: [statistics.median(turn[part] for turn in of) for part in (0, 1)] for name, of in turns.items()}
    fastest = min(FORMATS, key=lambda name: statistics.median(map(sum, turns[name])))
    ratio = lambda part: statistics.median(part(theirs) / max(part(ours), 1e-9) for ours, theirs in zip(turns["own"], turns[fastest]))
    return [*median["own"], *median[fastest], fastest, ratio(sum), ratio(lambda turn: turn[0]), ratio(lambda turn: turn[1])]


def main():
    parser = argparse.ArgumentParser(description="Times single layers beside PyTorch's; answers are compared first.")
    parser.add_argument("--layers", type=pathlib.Path, default=HERE / "layers.csv", help="the list; default: %(default)s")
    parser.add_argument("--only", default="", help="rows that this regular expression is found in")
    parser.add_argument("--batches", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=9, help="turns of each program; default: %(default)s")
    parser.add_argument("--seconds", type=float, default=1, help="for each layer, about; default: %(default)s")
    parser.add_argument("--driver", type=pathlib.Path, default=ROOT / "build/bench/bench/layers/layer_steps")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/bench/tessera")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "runs/layers.csv")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    with open(arguments.layers, encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if re.search(arguments.only, ",".join(row.values()))]
    known = {}
    with open(arguments.out, "w", encoding="utf-8", newline="") as file, tempfile.TemporaryDirectory() as scratch:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(COLUMNS)
        for batch, row in itertools.product(arguments.batches, rows):
            layer = Layer(row)
            key = (batch, row["maps"], row["section"], layer.input_gradient)
            if key not in known:
                text, shapes = layer.network()
                model = pathlib.Path(scratch) / "layer.cfg"
                model.write_text(text)
                check(layer, model, shapes, batch, arguments.program, pathlib.Path(scratch))
                known[key] = measure(layer, model, batch, arguments.driver, arguments.seconds, arguments.rounds)
            found = known[key]
            numbers = [f"{value:.4g}" if isinstance(value, float) else value for value in found]
            out.writerow([*row.values(), batch, *numbers])
            file.flush()
            print(f"{row['network']:12} {row['layer']:>3}  batch {batch}  {1e3 * sum(found[:2]):8.3f} ms  {1e3 * sum(found[2:4]):8.3f} ms  times {found[5]:5.2f} "
                  f"({found[6]:5.2f} forward, {found[7]:5.2f} backward)  {row['maps']} {row['section']}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
