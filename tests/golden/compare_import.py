#!/usr/bin/env python3
"""Imports ONNX files of PyTorch's exporters and compares `tessera gradients` with what those networks compute.

    compare_import.py --program build/release/tessera [--ranks 4 --grid 2x2] [--precision double] [NAME...]

Of each file in onnx/ that has numbers beside it: outputs, and where it has batch normalisation the gradients and running
statistics, by running statistics and by those of the batch. Needs the standard library only. Differences are relative to
the largest element of each tensor. Exits 1 where one is beyond the bound, or where the program fails.
"""

import argparse
import array
import math
import pathlib
import subprocess
import sys
import tempfile

from safetensors_file import read_safetensors, write_safetensors

FOLDER = pathlib.Path(__file__).parent / "onnx"
BOUNDS = {"double": 1e-6, "single": 1e-4}
LOGISTIC_FROM = {"csp-torch113": 4}  # these channels of the raw maps, which are one output, side by side


def difference(found, expected):
    if len(found) != len(expected) or any(value != value for value in found):
        return math.inf
    return max(abs(a - b) for a, b in zip(found, expected)) / (max(map(abs, expected)) or 1.0)


def side_by_side(maps, logistic_from):
    """Maps (N, C, H, W) as (N, C, cells of all)."""
    images, channels = maps[0][0][:2]
    joined = array.array("d")
    for image in range(images):
        for channel in range(channels):
            for shape, values in maps:
                cells = shape[2] * shape[3]
                begin = (image * channels + channel) * cells
                part = values[begin : begin + cells]
                for value in part:
                    joined.append(1 / (1 + math.exp(-value)) if channel >= logistic_from else value)
    return joined


def tensors_of_run(golden, weights, has_gradient):
    tensors = dict(weights)
    tensors["input"] = golden["input"]
    if has_gradient:
        shape, values = golden["output.0"]
        seeds = golden.get("seed.0", (shape, array.array("d", [1.0] * len(values))))[1]
        tensors["output_gradient"] = (shape + (1,) * (4 - len(shape)), seeds)
    return tensors


def outputs_of(found, name):
    keys = [key for key in found if key.startswith("output.")] or ["output"]
    keys.sort(key=lambda key: int(key.partition(".")[2] or 0))
    maps = [found[key] for key in keys]
    if name in LOGISTIC_FROM:
        return [side_by_side(maps, LOGISTIC_FROM[name])]
    return [values for _, values in maps]


def compare(found, golden, mode, name):
    """(difference, tensor) of the worst one."""
    prefix = "train." if mode == "sync" else ""
    expected = sorted(key for key in golden if key.startswith(prefix + "output."))
    outputs = outputs_of(found, name)
    if len(outputs) != len(expected):
        return math.inf, f"{len(outputs)} outputs"
    worst = max((difference(a, golden[b][1]), b) for a, b in zip(outputs, expected))
    if "input_gradient" not in found:
        return worst
    for key, (_, values) in golden.items():
        if key == prefix + "grad.input":
            worst = max(worst, (difference(found["input_gradient"][1], values), key))
        elif key.startswith((prefix + "grad.", prefix + "after.")) and prefix in key:
            # Names of layers are not those of the file: that of the tensor it is.
            least = min(difference(v, values) for n, (_, v) in found.items() if n.startswith("layers."))
            worst = max(worst, (least, key))
    return worst


def run_case(options, name, folder):
    """(failed, line to print)"""
    convert = [options.program, "convert", str(FOLDER / f"{name}.onnx"), "--out", str(folder / "m.cfg")]
    subprocess.run(convert, check=True, capture_output=True, timeout=options.timeout)
    golden = read_safetensors(FOLDER / f"{name}.safetensors")
    weights = read_safetensors(folder / "m.safetensors")
    one_output = name not in LOGISTIC_FROM and "output.1" not in golden
    write_safetensors(folder / "in", tensors_of_run(golden, weights, one_output))
    worst = (0.0, "")
    for mode in ["frozen", "sync"] if "train.output.0" in golden else ["frozen"]:
        program = options.launcher.split() + ["-n", str(options.ranks)] if options.ranks > 1 else []
        program += [options.program, "gradients", str(folder / "m.cfg"), "--in", str(folder / "in")]
        program += ["--out", str(folder / "out"), "--batch-norm", mode, "--precision", options.precision]
        program += ["--grid", options.grid] if options.grid else []
        subprocess.run(program, check=True, capture_output=True, timeout=options.timeout)
        worst = max(worst, compare(read_safetensors(folder / "out"), golden, mode, name))
    failed = not worst[0] <= BOUNDS[options.precision]
    return failed, f"{worst[0]:.1e}  {worst[1]}{'  BEYOND THE BOUND' if failed else ''}"


def parse_options():
    parser = argparse.ArgumentParser(description="Compare imported ONNX files with their numbers.")
    parser.add_argument("--program", default=str(FOLDER.parents[2] / "build/release/tessera"))
    parser.add_argument("--precision", choices=sorted(BOUNDS), default="single")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--grid", help="ROWSxCOLS")
    parser.add_argument("--launcher", default="mpiexec.mpich")
    parser.add_argument("--timeout", type=float, default=60, help="seconds a run may take")
    parser.add_argument("names", nargs="*", help="files; all with numbers by default")
    return parser.parse_args()


def main():
    options = parse_options()
    names = options.names or sorted(path.stem for path in FOLDER.glob("*.safetensors"))
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            try:
                failed, line = run_case(options, name, pathlib.Path(folder))
            except subprocess.CalledProcessError as error:
                failed, line = True, f"exit {error.returncode}: {error.stderr.decode().strip()}"
            failures += failed
            print(f"{name:40} {line}", flush=True)
    print(f"{len(names)} files, {failures} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
