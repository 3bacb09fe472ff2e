#!/usr/bin/python3
"""Solves small problems of moving data with `tessera balance` and, as mixed-integer programs, with COIN-OR's CBC, and writes a row of CSV for each.

    bench/heterogeneous/balance/against_cbc.py --program FILE --cbc FILE --out CSV [--devices 'N ...'] [--seeds 'S ...'] [--limit SECONDS]

Amounts of data, speeds, rates and capacities are drawn evenly from a range. With `latency` each pair that moves anything takes half a second
before its first byte, with `shards` samples move in whole shards of 50.
"""

import argparse
import csv
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

from simulate import DEVICE, balance

COLUMNS = ["charge", "devices", "seed", "tessera_s", "bound_s", "solve_s", "cbc_s", "cbc_bound_s", "cbc_optimal", "cbc_solve_s"]
CHARGES = {"latency": (1, 0.5), "shards": (50, 0.02)}  # samples of a shard, seconds of latency
SAMPLE_BYTES = 20000
EPOCHS = 2
LINK = 3e6  # bytes per second of a pair


class Problem:
    def __init__(self, charge, devices, seed):
        draw = random.Random(f"{charge} {devices} {seed}")
        self.shard, self.latency = CHARGES[charge]
        self.samples = [draw.randint(0, 3000) for _ in range(devices)]
        self.capacity = [samples + draw.randint(0, 3000) for samples in self.samples]
        self.seconds = [round(draw.uniform(5e-4, 1e-2), 6) for _ in range(devices)]
        self.rates = [round(draw.uniform(1e6, 2e7)) for _ in range(devices)]

    def arguments(self, folder):
        profile = folder / "cluster.toml"
        profile.write_text(f"[link]\nlatency_s = {self.latency}\nbytes_per_s = {LINK:.0f}\n" +
                           "".join(DEVICE.format(number=number, rate=rate) for number, rate in enumerate(self.rates)))
        listed = {"--seconds-per-sample": self.seconds, "--samples": self.samples, "--capacity": self.capacity}
        return ["balance", "--cluster", profile, "--sample-bytes", SAMPLE_BYTES, "--epochs", EPOCHS, "--shard-size", self.shard, "--json",
                *(word for option, numbers in listed.items() for word in (option, ",".join(map(str, numbers))))]

    def program(self):
        """In CPLEX's LP format: x are shards that a pair moves, y whether it moves any, move and epoch the two times."""
        devices = range(len(self.samples))

        def total(factor, pairs, sign="+"):
            return "".join(f" {sign} {factor:.15g} x_{i}_{j}" for i, j in pairs)

        rows = []
        for i in devices:
            out, into = [(i, j) for j in devices if j != i], [(j, i) for j in devices if j != i]
            trained = self.shard * self.seconds[i]
            sent = self.shard * SAMPLE_BYTES / self.rates[i]
            rows += [f"{total(self.shard, out)} <= {self.samples[i]}",
                     f"{total(self.shard, into)}{total(self.shard, out, '-')} <= {self.capacity[i] - self.samples[i]}",
                     f"{total(trained, into)}{total(trained, out, '-')} - epoch <= {-self.seconds[i] * self.samples[i]:.15g}",
                     f"{total(sent, out)} - move <= 0", f"{total(sent, into)} - move <= 0"]
            for _, j in out:
                rows += [f"{self.latency} y_{i}_{j} + {self.shard * SAMPLE_BYTES / LINK:.15g} x_{i}_{j} - move <= 0",
                         f"x_{i}_{j} - {self.samples[i] // self.shard} y_{i}_{j} <= 0"]
        pairs = [f"{i}_{j}" for i in devices for j in devices if i != j]
        return "\n".join(["Minimize", f" time: move + {EPOCHS} epoch", "Subject To", *(f" c{number}: {row}" for number, row in enumerate(rows)),
                          "Binary", *(f" y_{pair}" for pair in pairs), "General", *(f" x_{pair}" for pair in pairs), "End", ""])


def solved_by_cbc(cbc, file, limit):
    """The best time that CBC has found, its lower bound, and the seconds that it took."""
    start = time.monotonic()
    try:
        printed = subprocess.run([cbc, file, "ratio", "1e-9", "sec", str(limit), "solve"], check=True, capture_output=True, text=True).stdout
    except OSError as error:
        sys.exit(f"{cbc}: {error.strerror}: on Debian it is in the package coinor-cbc")
    seconds = time.monotonic() - start
    best = re.search(r"^Objective value: +(\S+)", printed, re.MULTILINE)
    bound = re.search(r"^Lower bound: +(\S+)", printed, re.MULTILINE)
    optimal = "Optimal solution found" in printed
    best_s = float(best[1]) if best else None
    return best_s, best_s if optimal else float(bound[1]) if bound else None, optimal, seconds


def row_of(given, charge, devices, seed):
    problem = Problem(charge, devices, seed)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        ours = balance(given.program, problem.arguments(folder))
        file = folder / "program.lp"
        file.write_text(problem.program())
        best_s, bound_s, optimal, seconds = solved_by_cbc(given.cbc, file, given.limit)
    return {"charge": charge, "devices": devices, "seed": seed, "tessera_s": f"{ours['total_s']:.9g}", "bound_s": f"{ours['lower_bound_s']:.9g}",
            "solve_s": f"{ours['solve_s']:.4g}", "cbc_s": "" if best_s is None else f"{best_s:.9g}",
            "cbc_bound_s": "" if bound_s is None else f"{bound_s:.9g}", "cbc_optimal": int(optimal), "cbc_solve_s": f"{seconds:.4g}"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/tessera")
    parser.add_argument("--cbc", default="cbc")
    parser.add_argument("--out", required=True)
    parser.add_argument("--devices", default="3 4 6 8")
    parser.add_argument("--seeds", default="1 2 3 4 5")
    parser.add_argument("--limit", type=float, default=30)
    given = parser.parse_args()
    with open(given.out, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for charge in CHARGES:
            for devices in map(int, given.devices.split()):
                for seed in map(int, given.seeds.split()):
                    writer.writerow(row_of(given, charge, devices, seed))
                    file.flush()
                print(f"{charge}, {devices} devices: done", file=sys.stderr)


if __name__ == "__main__":
    main()
