#!/usr/bin/python3
"""Compares a training step of full detectors with Debian's Darknet, on any number of ranks.

    cc -I/usr/lib/darknet/include darknet_step.c -L/usr/lib/darknet -ldarknet -lm \\
      -Wl,-rpath,/usr/lib/darknet -o /tmp/darknet_step
    ./compare_darknet.py --step /tmp/darknet_step --source DIR --ranks 1,4,6

Each model is as Debian ships it, with random weights, images and boxes, and batch_norm_rule=darknet. Prints and writes
the largest differences, relative to the largest element of each tensor:

    single   of this program in single precision from the installed Darknet, which computes in single precision
    double   of this program in double precision from Darknet's sources (--source: apt-get source darknet), compiled in it
    darknet  of the installed Darknet from these: what rounding does to it

In single precision rounding flips signs before leaky activations, and the argmax of pools, in the one program and not in
the other. That moves gradients of full maps by per cents of their largest element; in double precision nothing flips.

Needs Debian's darknet and python3-numpy.
"""

import argparse
import array
import csv
import datetime
import os
import pathlib
import subprocess
import sys
import tempfile
import zlib

import numpy

from detector_step import Model, darknet_step, draw, shipped_model
from safetensors_file import read_safetensors, write_safetensors

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MODELS = ["yolov1-tiny", "yolov2-tiny", "yolov3-tiny", "yolov2"]
SIZES = {"yolov1-tiny": 448}  # what its dense layer is made for
ELEMENTS = {"single": numpy.float32, "double": numpy.float64}
PARTS = ["outputs", "deltas", "loss", "weights", "biases_scales", "statistics", "input_gradient"]
COLUMNS = ["model", "size", "batch", "compared", "ranks", "margin", *PARTS, "worst_weight"]
# Options that say where something is, as an origin shows them.
PLACES = {"--out": [], "--program": [], "--step": ["--step", "darknet_step"], "--source": ["--source", "DIR"],
          "--double-step": ["--source", "DIR"]}  # fmt: skip
GRIDS = {1: "1x1", 2: "1x2", 3: "1x3", 4: "2x2", 6: "2x3", 8: "2x4", 9: "3x3"}

# System headers first, which must keep what they mean by float.
PREFIX = "".join(
    f"#include <{name}.h>\n" for name in ("math", "stdio", "stdlib", "string", "float", "time", "pthread")
) + "#define float double\n"


def compile_in_double(source, folder):
    """A darknet_step in double precision, of Darknet's sources."""
    source = pathlib.Path(source)
    (folder / "double.h").write_text(PREFIX)
    files = [path for path in sorted((source / "src").glob("*.c")) if path.stem != "compare"]  # which does not compile
    program = folder / "darknet_step"
    subprocess.run(
        ["cc", "-O3", "-march=native", "-ffp-contract=off", "-w", "-DSTBI_NO_SIMD", "-include", folder / "double.h",
         "-I", source / "include", "-I", source / "src", HERE / "darknet_step.c", *files, "-o", program, "-lm", "-lpthread"],
        check=True)  # fmt: skip
    return program


def part_of(name):
    if name.startswith("output."):
        return "outputs"
    if name.startswith("delta."):
        return "deltas"
    if name.endswith((".bn.mean", ".bn.variance")):
        return "statistics"
    if name.endswith(".weight"):
        return "weights"
    return name if name in PARTS else "biases_scales"


def differences(found, expected):
    """The worst of each part, and which weight it is."""
    worst = dict.fromkeys(PARTS, 0.0)
    worst_weight = ""
    for name, values in expected.items():
        shape, numbers = found[name]
        here = numpy.frombuffer(numbers, "f8" if numbers.typecode == "d" else "f4").reshape(shape)
        difference = float(numpy.abs(here.reshape(values.shape) - values).max() / (numpy.abs(values).max() or 1))
        difference = difference if difference == difference else float("inf")
        part = part_of(name)
        if difference >= worst[part]:
            worst[part] = difference
            worst_weight = name if part == "weights" else worst_weight
    return worst, worst_weight


def as_safetensors(tensors):
    return {key: (value.shape, array.array("f", value.astype(numpy.float32).tobytes())) for key, value in tensors.items()}


def tessera_step(options, precision, ranks, folder):
    command = [options.program, "gradients", folder / "cfg", "--in", folder / "in", "--out", folder / "out"]
    command += ["--precision", precision]
    if ranks > 1:
        command = [*options.launcher.split(), "-n", str(ranks), *command, "--grid", GRIDS[ranks]]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"} if ranks > 1 else None
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return read_safetensors(folder / "out")


def compare(options, steps, name, folder):
    """Rows of one model. `steps`: Darknet's programs by precision."""
    rows, cols = options.size or [SIZES.get(name, 416)] * 2
    model = Model(shipped_model(name, options.batch, rows, cols))
    random = numpy.random.RandomState((zlib.crc32(name.encode()) + options.seed) % 2**32)
    tensors, boxes = draw(random, model, int(model.head[1]["classes"]))
    (folder / "cfg").write_text(model.text)
    write_safetensors(folder / "in", as_safetensors(tensors))
    of_darknet = {
        precision: darknet_step(step, model, tensors, boxes, ELEMENTS[precision]) for precision, step in steps.items()
    }

    def row(compared, ranks, found, precision):
        expected, margin = of_darknet[precision]
        worst, worst_weight = differences(found, expected)
        return {
            "model": name, "size": f"{rows}x{cols}", "batch": options.batch, "compared": compared, "ranks": ranks,
            "margin": f"{margin:.1e}", **{part: f"{worst[part]:.1e}" for part in PARTS}, "worst_weight": worst_weight,
        }  # fmt: skip

    for precision in steps:
        for ranks in options.ranks:
            yield row(precision, ranks, tessera_step(options, precision, ranks, folder), precision)
    if len(steps) > 1:
        yield row("darknet", 1, as_safetensors(of_darknet["single"][0]), "double")


def note_origin(path):
    """Beside a result, what measured it, as the benches have it."""
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    processor = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    darknet = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "darknet"], capture_output=True, text=True)
    words = sys.argv[1:]
    for flag, shown in PLACES.items():
        if flag in words:
            at = words.index(flag)
            words[at : at + 2] = shown
    path.with_suffix(".origin").write_text(
        f"machine: {processor[0] if processor else 'unknown'}, {os.cpu_count()} processors\n"
        f"commit: {commit.stdout.strip() or 'unknown'}\ndate: {datetime.date.today()}\n"
        f"command: tests/golden/compare_darknet.py {' '.join(words)}\nnote: darknet {darknet.stdout}\n")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step", help="darknet_step, linked to the installed library")
    double = parser.add_mutually_exclusive_group()
    double.add_argument("--source", help="folder of Darknet's sources, which are compiled in double precision")
    double.add_argument("--double-step", help="a darknet_step that was compiled so")
    parser.add_argument("--program", default=ROOT / "build/release/tessera")
    parser.add_argument("--launcher", default="mpiexec.mpich")
    parser.add_argument("--ranks", default="1", type=lambda text: [int(word) for word in text.split(",")])
    parser.add_argument("--batch", default=1, type=int)
    parser.add_argument("--size", type=lambda text: [int(side) for side in text.split("x")], help="ROWSxCOLS; by default 416x416")
    parser.add_argument("--seed", default=0, type=int)
    parser.add_argument("--out", type=pathlib.Path, help="a CSV; rows are added to it")
    parser.add_argument("models", nargs="*", default=MODELS)
    options = parser.parse_args()
    if not (options.step or options.source or options.double_step):
        parser.error("expected --step, --source or both")
    if options.size and len(options.size) != 2:
        parser.error("--size: expected ROWSxCOLS")
    for name in options.models:
        if name not in MODELS:
            parser.error(f"{name}: expected some of {', '.join(MODELS)}")
    if unknown := set(options.ranks) - set(GRIDS):
        parser.error(f"--ranks: {min(unknown)}: expected some of {', '.join(map(str, GRIDS))}")
    return options


def main():
    options = parse_options()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        steps = {"single": options.step} if options.step else {}
        if options.double_step or options.source:
            steps["double"] = options.double_step or compile_in_double(options.source, folder)
        print(" ".join(f"{column:>14}" for column in COLUMNS))
        for name in options.models:
            for row in compare(options, steps, name, folder):
                print(" ".join(f"{row[column]!s:>14}" for column in COLUMNS), flush=True)
                if options.out:
                    new = not options.out.exists()
                    with open(options.out, "a", newline="", encoding="utf-8") as file:
                        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                        if new:
                            writer.writeheader()
                        writer.writerow(row)
        if options.out:
            note_origin(options.out)


if __name__ == "__main__":
    main()
