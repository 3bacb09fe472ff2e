#!/usr/bin/python3
"""Makes the CSV of choice.sh out of what its runs wrote: CLUSTER@MODEL@all@ROUND.json, where all sets of devices were tried, and
CLUSTER@MODEL@OBJECTIVE.json, where some were, with the seconds until the choice beside it. Devices that CLUSTER.devices describes alike
are the same but for chance, so sets that differ only in which of them they take count as one, measured several times.

    bench/heterogeneous/choice_rows.py FOLDER --hours H
"""

import argparse
import collections
import csv
import json
import pathlib
import statistics
import sys

OBJECTIVES = ("time", "power", "energy", "edp")
COLUMNS = ["cluster", "model", "objective", "sets", "tried", "best", "best_value", "chosen", "chosen_value", "excess",
           "trial_steps", "trial_s", "trial_share", "largest_error"]


def value_of(objective, step_s, power_w):
    return {"time": step_s, "power": power_w, "energy": step_s * power_w, "edp": step_s * step_s * power_w}[objective]


def read_kinds(path):
    """{device: the first device that is like it}: devices that the description gives the same numbers and board."""
    kinds, first = {}, {}
    for line in path.read_text().splitlines():
        name, *numbers = line.partition("#")[0].split() or [None]
        if name is not None:
            kinds[name] = first.setdefault(tuple(sorted(numbers)), name)
    return kinds


def set_of_kinds(devices, kinds):
    """Sets that differ only in which of several like devices they take are one set: the one with the first devices of each kind."""
    left, taken = collections.Counter(kinds[device] for device in devices), []
    for name, kind in kinds.items():
        if left[kind] > 0:
            left[kind] -= 1
            taken.append(name)
    return tuple(taken)


def measured_sets(paths, kinds):
    """{devices: [candidate of choice.json...]}, one of each round and of each set of like devices; sets that were tried in all rounds."""
    sets = collections.defaultdict(list)
    for path in paths:
        for candidate in json.loads(path.read_text())["candidates"]:
            if candidate["measured_step_s"] is not None:
                sets[tuple(candidate["devices"])].append(candidate)
    pooled = collections.defaultdict(list)
    for devices, tried in sets.items():
        if len(tried) == len(paths):
            pooled[set_of_kinds(devices, kinds)] += tried
    return pooled


def row_of(key, objective, sets, kinds, choice, seconds, hours):
    """Nothing where the choice cannot be judged; it says so on standard error."""
    cluster, model = key
    if choice["chosen"] is None:
        print(f"{cluster}, {model}, {objective}: no set was chosen; left out", file=sys.stderr)
        return None
    chosen = choice["candidates"][choice["chosen"]]
    devices = set_of_kinds(chosen["devices"], kinds)
    if devices not in sets:
        print(f"{cluster}, {model}, {objective}: {', '.join(devices)} was chosen and not among the sets that were all tried; "
              "left out", file=sys.stderr)
        return None
    values = {each: statistics.median(value_of(objective, trial["measured_step_s"], trial["power_w"]) for trial in trials)
              for each, trials in sets.items()}
    best = min(values, key=values.get)
    tried = [candidate for candidate in choice["candidates"] if candidate["tried_steps"] > 0]
    return {"cluster": cluster, "model": model, "objective": objective, "sets": len(sets),
            "tried": len({set_of_kinds(candidate["devices"], kinds) for candidate in tried}),
            "best": " ".join(best), "best_value": values[best], "chosen": " ".join(devices), "chosen_value": values[devices],
            "excess": values[devices] / values[best] - 1, "trial_steps": sum(candidate["tried_steps"] for candidate in tried),
            "trial_s": seconds, "trial_share": seconds / (3600 * hours),
            "largest_error": max(abs(trial["predicted_step_s"] / trial["measured_step_s"] - 1) for trials in sets.values() for trial in trials)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--hours", type=float, required=True)
    options = parser.parse_args()
    rounds = collections.defaultdict(list)
    for path in sorted(options.folder.glob("*@*@all@*.json")):
        rounds[path.name.rpartition("@all@")[0]].append(path)
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for name, paths in rounds.items():
        key = tuple(name.split("@", 1))
        kinds = read_kinds(options.folder / f"{key[0]}.devices")
        sets = measured_sets(paths, kinds)
        for objective in OBJECTIVES:
            path = options.folder / f"{name}@{objective}.json"
            if path.exists():
                seconds = float(path.with_suffix(".seconds").read_text())
                row = row_of(key, objective, sets, kinds, json.loads(path.read_text()), seconds, options.hours)
                if row is not None:
                    writer.writerow(row)


if __name__ == "__main__":
    main()
