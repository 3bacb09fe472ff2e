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
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import types

import torch

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
sys.path.insert(0, str(HERE))
from cfg_network import STATISTICS, Layer  # noqa: E402
from roofline import Roofline  # noqa: E402
from torch_layers import exchanged, expect_same, forward_of, random_values  # noqa: E402

SHIM_CHANNELS = 8  # of the image that convolutions make the maps of a layer with several inputs from
MOST_ERROR = 5e-3  # Euclidean norm of the difference by that of PyTorch's: Winograd's rounding, and signs of activations that flip with it (one of them: 2e-3)
FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
COLUMNS = ["network", "layer", "count", "maps", "section", "batch", "forward_s", "backward_s", "torch_forward_s", "torch_backward_s", "torch_format",
           "times", "times_forward", "times_backward", "roof_forward_s", "roof_backward_s"]


class MeasuredLayer(Layer):
    """A row of layers.csv."""

    def __init__(self, row):
        kind, *options = row["section"].split()
        inputs = [tuple(map(int, shape.split("x"))) for shape in row["maps"].split("+")]
        super().__init__(kind.strip("[]"), dict(option.split("=", 1) for option in options), inputs)
        self.forward = forward_of(self)
        # That of the image is nobody's.
        self.input_gradient = row["layer"] != "0" or row["network"] == "others"

    def network(self):
        """A model file whose last layer this is."""
        channels, height, width = self.inputs[0]
        shims, section = "", dict(self.options)
        if self.kind in ("route", "shortcut", "sam", "scale_channels"):
            channels, height, width = SHIM_CHANNELS, *map(max, list(zip(*self.inputs))[1:])
            # A convolution makes each input; the one that the layer follows comes last.
            for filters, rows, cols in [*self.inputs[1:], self.inputs[0]]:
                shims += f"[convolutional]\nfilters={filters}\nstride_y={height // rows}\nstride_x={width // cols}\nactivation=linear\n"
            others = [str(place) for place in range(len(self.inputs) - 1)]
            section |= {"layers": ",".join(["-1", *others])} if self.kind == "route" else {"from": ",".join(others)}
        net = f"[net]\nheight={height}\nwidth={width}\nchannels={channels}\n"
        return net + shims + f"[{self.kind}]\n" + "".join(f"{key}={value}\n" for key, value in section.items())

    def __call__(self, inputs, values):
        output = self.forward(inputs, values)
        # A view would leave the copy to the layer after it.
        return output.clone() if self.kind == "route" and len(inputs) == 1 else output


class TorchSteps:
    """The layer by itself, in a memory format."""

    def __init__(self, layer, batch, memory_format):
        self.layer = layer
        self.values = types.SimpleNamespace()
        self.leaves = []
        for name, shape in layer.parameters().items():
            values = exchanged(layer, name, random_values(name, shape))
            values = values.to(memory_format=memory_format) if values.dim() == 4 else values
            setattr(self.values, name, values)
            self.leaves += [] if name in STATISTICS else [values.requires_grad_(True)]
        self.inputs = [(2 * torch.rand(batch, *shape) - 1).to(memory_format=memory_format) for shape in layer.inputs]
        if layer.input_gradient:
            self.leaves += [x.requires_grad_(True) for x in self.inputs]
        output = layer(self.inputs, self.values)
        self.gradient = (2 * torch.rand(output.shape) - 1).to(memory_format=memory_format)

    def run(self, steps):
        seconds = []
        for _ in range(steps):
            for leaf in self.leaves:
                leaf.grad = None
            begin = time.perf_counter()
            output = self.layer(self.inputs, self.values)
            middle = time.perf_counter()
            if self.leaves:
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
    roofline = Roofline()
    print(roofline)
    with open(arguments.out, "w", encoding="utf-8", newline="") as file, tempfile.TemporaryDirectory() as scratch:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(COLUMNS)
        for batch, row in itertools.product(arguments.batches, rows):
            layer = MeasuredLayer(row)
            key = (batch, row["maps"], row["section"], layer.input_gradient)
            if key not in known:
                model = pathlib.Path(scratch) / "layer.cfg"
                model.write_text(layer.network(), encoding="utf-8")
                expect_same(arguments.program, model, batch, "single", MOST_ERROR)
                known[key] = [*measure(layer, model, batch, arguments.driver, arguments.seconds, arguments.rounds), *roofline.of_layer(layer, batch)]
            found = known[key]
            numbers = [f"{value:.4g}" if isinstance(value, float) else value for value in found]
            out.writerow([*row.values(), batch, *numbers])
            file.flush()
            print(f"{row['network']:12} {row['layer']:>3}  batch {batch}  {1e3 * sum(found[:2]):8.3f} ms  {1e3 * sum(found[2:4]):8.3f} ms  times {found[5]:5.2f} "
                  f"({found[6]:5.2f} forward, {found[7]:5.2f} backward)  {sum(found[8:]) / sum(found[:2]):4.0%} of the roofline  {row['maps']} {row['section']}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
