#!/usr/bin/python3
"""Chooses moves between the devices of made-up clusters with `tessera balance`, and writes a row of CSV for each.

    bench/heterogeneous/balance/simulate.py --program FILE --out CSV [--devices 'N ...'] [--kinds 'NAME ...'] [--imbalances 'R ...'] [--seeds 'S ...']

A cluster has devices of unlike amounts of data, links or speeds. What is unlike is spread evenly on a logarithmic scale, the largest
R times the smallest, in random order; its mean is the same for every R. See run.sh.
"""

import argparse
import csv
import json
import pathlib
import random
import subprocess
import sys
import tempfile

COLUMNS = ["kind", "devices", "classes", "imbalance", "seed", "epochs", "unmoved_s", "exact_s", "greedy_s", "bound_s", "exact_solve_s", "greedy_solve_s",
           "moved_share", "move_s", "any_class_s"]
SAMPLES = 2000  # of a device, on average
SAMPLE_BYTES = 3072  # a colour picture of 32x32 pixels
SECONDS = 2e-3  # for a sample, on the mean device
RATE = 11.75e6  # bytes per second: 100 Mbit/s
UNLIKE = {"data": {"data"}, "speeds": {"speeds"}, "links": {"data", "links"}, "all": {"data", "links", "speeds"}, "classes": {"data", "classes"}}
PROFILE = """[link]
latency_s = 0.00015
bytes_per_s = inf
"""
DEVICE = """
[[device]]
names = ["d{number}"]
memory_bytes = 1000000000
program_bytes = 1000000
message_s = 0
memory_bytes_per_s = inf
copied_bytes_per_s = inf
send_bytes_per_s = {rate:.0f}
receive_bytes_per_s = {rate:.0f}
direct_flops_per_s = 1000000000
winograd_flops_per_s = 1000000000
updated_weights_per_s = inf
normalize_bytes_per_s = {{ forward = inf, backward = inf }}
activate_bytes_per_s = {{ forward = inf, backward = inf }}
pool_bytes_per_s = {{ forward = inf, backward = inf }}
elementwise_bytes_per_s = {{ forward = inf, backward = inf }}
"""


def spread(count, imbalance, draw):
    """Numbers of mean 1 whose largest is `imbalance` times their smallest, in random order."""
    numbers = [imbalance ** (i / max(1, count - 1)) for i in range(count)]
    mean = sum(numbers) / count
    draw.shuffle(numbers)
    return [number / mean for number in numbers]


class Cluster:
    def __init__(self, kind, devices, classes, imbalance, seed):
        draw = random.Random(f"{kind} {devices} {imbalance} {seed}")
        unlike = UNLIKE[kind]

        def of_devices(what):
            return spread(devices, imbalance if what in unlike else 1, draw)

        self.samples = [round(SAMPLES * number) for number in of_devices("data")]
        self.seconds = [SECONDS * number for number in of_devices("speeds")]
        self.rates = [RATE * number for number in of_devices("links")]
        self.classes = None
        if kind == "classes":
            self.classes = [[round(samples * number / classes) for number in spread(classes, imbalance, draw)] for samples in self.samples]
            self.samples = [sum(of_device) for of_device in self.classes]

    def arguments(self, folder, epochs):
        profile = folder / "cluster.toml"
        profile.write_text(PROFILE + "".join(DEVICE.format(number=number, rate=rate) for number, rate in enumerate(self.rates)))
        arguments = ["balance", "--cluster", profile, "--sample-bytes", SAMPLE_BYTES, "--epochs", epochs, "--json",
                     "--seconds-per-sample", ",".join(f"{seconds:.9g}" for seconds in self.seconds)]
        if self.classes:
            table = folder / "classes.csv"
            names = [f"c{number}" for number in range(len(self.classes[0]))]
            table.write_text("\n".join(",".join(map(str, row)) for row in [["device", *names], *([i, *counts] for i, counts in enumerate(self.classes))]) + "\n")
            return [*arguments, "--classes", table]
        return [*arguments, "--samples", ",".join(map(str, self.samples))]


def balance(program, arguments):
    try:
        done = subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True)
    except OSError as error:
        sys.exit(f"{program}: {error.strerror}")
    except subprocess.CalledProcessError as error:
        sys.exit(error.stderr.strip())
    return json.loads(done.stdout)


def row_of(program, kind, devices, classes, imbalance, seed, epochs):
    cluster = Cluster(kind, devices, classes, imbalance, seed)
    with tempfile.TemporaryDirectory() as folder:
        arguments = cluster.arguments(pathlib.Path(folder), epochs)
        exact = balance(program, arguments)
        greedy = None if kind == "classes" else balance(program, [*arguments, "--method", "greedy"])
    unmoved_s = epochs * max(seconds * samples for seconds, samples in zip(cluster.seconds, cluster.samples))
    return {"kind": kind, "devices": devices, "classes": classes if kind == "classes" else "", "imbalance": imbalance, "seed": seed, "epochs": epochs,
            "unmoved_s": f"{unmoved_s:.6g}", "exact_s": f"{exact['total_s']:.6g}", "greedy_s": f"{greedy['total_s']:.6g}" if greedy else "",
            "bound_s": f"{exact['lower_bound_s']:.6g}", "exact_solve_s": f"{exact['solve_s']:.4g}",
            "greedy_solve_s": f"{greedy['solve_s']:.4g}" if greedy else "",
            "moved_share": f"{sum(count for _, _, count in exact['moves']) / sum(cluster.samples):.4g}", "move_s": f"{exact['t_move_s']:.6g}",
            "any_class_s": f"{exact['total_without_classes_s']:.6g}" if kind == "classes" else ""}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/tessera")
    parser.add_argument("--out", required=True)
    parser.add_argument("--devices", default="5 10 20 50 100")
    parser.add_argument("--kinds", default="data speeds links all classes")
    parser.add_argument("--imbalances", default="1 2 4 8 16")
    parser.add_argument("--seeds", default="1 2 3")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--class-devices", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=10)
    given = parser.parse_args()
    with open(given.out, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for kind in given.kinds.split():
            for devices in [given.class_devices] if kind == "classes" else map(int, given.devices.split()):
                for imbalance in map(float, given.imbalances.split()):
                    for seed in map(int, given.seeds.split()):
                        writer.writerow(row_of(given.program, kind, devices, given.classes, imbalance, seed, given.epochs))
                print(f"{kind}, {devices} devices: done", file=sys.stderr)


if __name__ == "__main__":
    main()
