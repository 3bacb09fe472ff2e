#!/usr/bin/python3
"""Makes the CSV of choice.sh out of what its runs wrote: CLUSTER@MODEL@all@ROUND.json, where all sets of devices were tried, and
CLUSTER@MODEL@OBJECTIVE.json, where some were, with the seconds until the choice beside it.

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


def measured_sets(paths):
    """{devices: (step_s, power_w, predicted_step_s)}, medians of the rounds; sets that were tried in all of them."""
    steps, powers, predicted = collections.defaultdict(list), collections.defaultdict(list), {}
    for path in paths:
        for candidate in json.loads(path.read_text())["candidates"]:
            if candidate["measured_step_s"] is not None:
                devices = tuple(candidate["devices"])
                steps[devices].append(candidate["measured_step_s"])
                powers[devices].append(candidate["power_w"])
                predicted[devices] = candidate["predicted_step_s"]
    return {devices: (statistics.median(of), statistics.median(powers[devices]), predicted[devices])
            for devices, of in steps.items() if len(of) == len(paths)}


def row_of(key, objective, sets, choice, seconds, hours):
    """Nothing where the choice cannot be judged; it says so on standard error."""
    cluster, model = key
    if choice["chosen"] is None:
        print(f"{cluster}, {model}, {objective}: no set was chosen; left out", file=sys.stderr)
        return None
    chosen = choice["candidates"][choice["chosen"]]
    devices = tuple(chosen["devices"])
    if devices not in sets:
        print(f"{cluster}, {model}, {objective}: {', '.join(devices)} was chosen and not among the sets that were all tried; "
              "left out", file=sys.stderr)
        return None
    values = {each: value_of(objective, step_s, power_w) for each, (step_s, power_w, _) in sets.items()}
    best = min(values, key=values.get)
    tried = [candidate for candidate in choice["candidates"] if candidate["tried_steps"] > 0]
    return {"cluster": cluster, "model": model, "objective": objective, "sets": len(sets), "tried": len(tried),
            "best": " ".join(best), "best_value": values[best], "chosen": " ".join(devices), "chosen_value": values[devices],
            "excess": values[devices] / values[best] - 1, "trial_steps": sum(candidate["tried_steps"] for candidate in tried),
            "trial_s": seconds, "trial_share": seconds / (3600 * hours),
            "largest_error": max(abs(predicted / step_s - 1) for step_s, _, predicted in sets.values())}


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
        sets = measured_sets(paths)
        key = tuple(name.split("@", 1))
        for objective in OBJECTIVES:
            path = options.folder / f"{name}@{objective}.json"
            if path.exists():
                seconds = float(path.with_suffix(".seconds").read_text())
                row = row_of(key, objective, sets, json.loads(path.read_text()), seconds, options.hours)
                if row is not None:
                    writer.writerow(row)


if __name__ == "__main__":
    main()
