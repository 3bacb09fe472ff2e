#!/usr/bin/env python3
"""Runs `tessera gradients` on the golden cases and prints the largest difference from PyTorch of each.

    compare_cli.py --program build/release/tessera [--precision double] [--grid 2x2] [NAME...]

Needs the standard library only. Differences are relative to the largest element of each expected tensor. Exits 1
where one is beyond the bound, or where the program fails; a grid that a case cannot be cut into is shown, not failed.
"""

import argparse
import array
import pathlib
import subprocess
import sys
import tempfile

from safetensors_file import read_safetensors, write_safetensors

FOLDER = pathlib.Path(__file__).parent
BOUNDS = {"double": 1e-9, "single": 2e-5}  # as in tests/engine/golden_test.cpp
REFUSED = 2  # exit code for input that cannot be used


def largest_difference(found, golden):
    """(difference, name); absolute where everything expected is 0."""
    worst = (0.0, "")
    for name, (shape, expected) in golden.items():
        if not name.startswith("expected."):
            continue
        name = name.removeprefix("expected.")
        if name not in found or found[name][0] != shape:
            return float("inf"), f"{name} {found.get(name, ('is missing',))[0]}, expected {shape}"
        pairs = zip(found[name][1], expected)
        differences = [abs(a - b) for a, b in pairs]
        if any(d != d for d in differences):
            return float("inf"), f"{name} is not a number"
        worst = max(worst, (max(differences) / (max(map(abs, expected)) or 1.0), name))
    return worst


def command(options, name, folder):
    program = []
    ranks = 1
    if options.grid:
        rows, cols = (int(side) for side in options.grid.split("x"))
        ranks = rows * cols
    if ranks > 1:
        program = [*options.launcher.split(), "-n", str(ranks)]
    program += [options.program, "gradients", str(FOLDER / f"{name}.cfg")]
    program += ["--in", str(folder / "in"), "--out", str(folder / "out")]
    if options.grid:
        program += ["--grid", options.grid]
    if options.precision == "double":
        program += ["--precision", "double"]
    if name.startswith("frozen_"):
        program += ["--batch-norm", "frozen"]
    return program


def run_case(options, name, folder):
    """(failed, line to print)"""
    golden = read_safetensors(FOLDER / f"{name}.safetensors")
    code = "d" if options.precision == "double" else "f"
    write_safetensors(
        folder / "in",
        {
            tensor: (shape, array.array(code, values))
            for tensor, (shape, values) in golden.items()
            if not tensor.startswith("expected.")
        },
    )
    (folder / "out").unlink(missing_ok=True)
    run = subprocess.run(
        command(options, name, folder), capture_output=True, text=True, timeout=options.timeout
    )
    if run.returncode != 0:
        said = (run.stderr.strip() or run.stdout.strip() or "nothing said").splitlines()[0]
        refused = run.returncode == REFUSED and options.grid is not None
        return not refused, f"{'refused' if refused else f'exit {run.returncode}'}: {said}"
    difference, tensor = largest_difference(read_safetensors(folder / "out"), golden)
    failed = not difference <= BOUNDS[options.precision]
    return failed, f"{difference:.1e}  {tensor}{'  BEYOND THE BOUND' if failed else ''}"


def parse_options():
    parser = argparse.ArgumentParser(description="Compare tessera gradients with the golden files.")
    parser.add_argument("--program", default=str(FOLDER.parents[1] / "build/release/tessera"))
    parser.add_argument("--precision", choices=sorted(BOUNDS), default="single")
    parser.add_argument("--grid", help="ROWSxCOLS, on as many ranks")
    parser.add_argument("--launcher", default="mpiexec.mpich")
    parser.add_argument("--timeout", type=float, default=60, help="seconds a case may take")
    parser.add_argument("names", nargs="*", help="cases; all of them by default")
    return parser.parse_args()


def main():
    options = parse_options()
    names = options.names or sorted(
        path.stem for path in FOLDER.glob("*.safetensors") if not path.stem.startswith("darknet_")
    )
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            try:
                failed, line = run_case(options, name, pathlib.Path(folder))
            except subprocess.TimeoutExpired:
                failed, line = True, f"still running after {options.timeout} s"
            failures += failed
            print(f"{name:40} {line}", flush=True)
    print(f"{len(names)} cases, {failures} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
