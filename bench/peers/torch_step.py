#!/usr/bin/python3
"""Times a training step of a model file in PyTorch, as `tessera time` does: random pictures, forward, backward, SGD with momentum.

    bench/peers/torch_step.py MODEL.cfg --size 416x416 --batch 1 --threads 2 --steps 5 [--channels-last] [--json]
    bench/peers/torch_step.py MODEL.cfg --size 96x96 --batch 2 --check build/release/tessera

Needs Debian's python3-torch, and libopenblas0: some convolutions go to the machine's BLAS, and the one that Debian installs by
default is many times slower. The loss is the sum of the output, or of all inputs of [yolo] and [yolox], times a
constant, or cross-entropy where the network ends with [softmax]. bench/peers/run.sh starts it with glibc's allocator as it is and tuned.
"""

import argparse
import json
import pathlib
import re
import resource
import statistics
import sys
import tempfile
import time

import torch
from torch.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cfg_network import read_network  # noqa: E402
from torch_layers import Network, comparable_text, expect_same  # noqa: E402

MOST_ERROR = 1e-6  # in double precision: a normalisation over few cells divides rounding errors by deviations near zero

def blas():
    """The library that PyTorch multiplies matrices with; "reference" is the slow one."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        names = sorted({pathlib.Path(line.split()[-1]).name for line in maps if "/" in line})
    fast = [name for name in names if re.match(r"lib(openblas|blis|mkl|atlas)", name)]
    if fast:
        return fast[0]
    return "reference" if any(name.startswith("libblas.so") for name in names) else "its own"


def check(arguments, parameters):
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / pathlib.Path(arguments.model).name
        model.write_text(comparable_text(arguments.model, arguments.size), encoding="utf-8")
        expect_same(arguments.check, model, arguments.batch, "double", MOST_ERROR)
    print(f"{arguments.model}: output and gradients are those of {arguments.check}, {parameters} parameters")


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
    parser.add_argument("--check", metavar="TESSERA", help="measure nothing; compare outputs and gradients with those of this program")
    arguments = parser.parse_args()
    if arguments.about:
        print(f"PyTorch {torch.__version__}, BLAS: {blas()}")
        return
    if arguments.model is None:
        parser.error("which model?")
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    described = read_network(arguments.model, arguments.size)
    network = Network(described)
    if arguments.check:
        check(arguments, sum(values.numel() for values in network.parameters()))
        return
    images = torch.rand(arguments.batch, *described.image)
    if arguments.channels_last:
        network = network.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-4, momentum=0.9, weight_decay=5e-4)
    labels = torch.zeros(arguments.batch, dtype=torch.long)
    classifies = any(layer.kind == "softmax" for layer in described.layers)

    def step():
        optimizer.zero_grad(set_to_none=True)
        output = network(images)
        loss = functional.cross_entropy(output.flatten(1), labels) if classifies else output.sum() * 1e-6
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
