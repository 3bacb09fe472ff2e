"""Reads the result files of the benches: a CSV and, beside it, NAME.origin, which says how it was measured.

A result file has the rows that a bench writes, one for each round of each measurement, or one row for each table row, with some
columns worked out already (`times`, `ratio`, `median_error`, ...). What a column gives is taken from it; the rest is computed here.
"""

import csv
import pathlib
import statistics
import sys

MIB = 2**20
MEASURED_PARTS = ["computing", "maps", "statistics", "sums", "idle"]  # columns of the CSV
SETTING = ("cluster", "devices", "rate_mbit", "dilation", "model", "size", "batch")


def open_text(path):
    try:
        return open(path, encoding="utf-8", newline="")
    except OSError as error:
        sys.exit(f"{path}: {error.strerror}")


def rows_of(path):
    with open_text(path) as file:
        return list(csv.DictReader(file))


def origin_of(path):
    """{"machine": [...], "commit": [...], "date": [...], "command": [...], "note": [...]} of a CSV's origin file."""
    origin = {}
    with open_text(pathlib.Path(path).with_suffix(".origin")) as file:
        for line in file:
            key, _, value = line.strip().partition(": ")
            origin.setdefault(key, []).append(value)
    return origin


def number(text):
    """None where a column is absent or empty."""
    return float(text) if text else None


def largest(numbers):
    return max((int(value) for value in (numbers or "").split()), default=0)


class Step:
    """A partition in a setting: what is predicted, and what its rounds measured, in seconds and bytes."""

    def __init__(self, row):
        self.row = row
        self.name = row["name"]
        self.setting = tuple(row.get(column, "") for column in SETTING)
        self.devices = int(row["devices"])
        self.batch = int(row["batch"])
        self.predicted_s = number(row.get("predicted_s"))
        self.planned_bytes = largest(row.get("planned_bytes"))
        self.rounds = []
        self.parts = []
        self.peaks = []  # of each round, of each rank
        self.peak_bytes = 0

    def add(self, row):
        if row.get("measured_s"):
            self.rounds.append(float(row["measured_s"]))
            self.parts.append([float(row.get(part + "_s") or 0) for part in MEASURED_PARTS])
        if row.get("peak_bytes"):
            self.peaks.append([int(peak) for peak in row["peak_bytes"].split()])
            self.peak_bytes = max(self.peak_bytes, largest(row["peak_bytes"]))

    @property
    def measured_s(self):
        return statistics.median(self.rounds)

    @property
    def range_s(self):
        """The fastest and the slowest round."""
        return number(self.row.get("least_round_s")) or min(self.rounds), number(self.row.get("most_round_s")) or max(self.rounds)

    def spent(self, part):
        """Seconds of a mean device, the median of the rounds."""
        return statistics.median(parts[MEASURED_PARTS.index(part)] for parts in self.parts)

    def get(self, column):
        return number(self.row.get(column))


def all_steps(path):
    """In the order of the file, those without a measurement too."""
    steps = {}
    for row in rows_of(path):
        steps.setdefault(tuple(row.get(column, "") for column in (*SETTING, "name")), Step(row)).add(row)
    return list(steps.values())


def steps_of(path):
    """Those that were measured, in the order of the file."""
    measured = [step for step in all_steps(path) if step.rounds]
    return measured or sys.exit(f"{path}: nothing has been measured yet")


def by(items, key):
    groups = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


# ---- several devices beside one ----


def kind_of(step):
    """Of devices: "pi3" in the cluster "pi3x6-100"."""
    return step.row["cluster"].rpartition("-")[0].rpartition("x")[0]


class Baseline:
    """One device by itself, for a batch: measured_s and predicted_s. Where it has to recompute layers for lack of memory, which
    several need not, it takes the batch in passes of fewer images instead, of which `passes` says how many."""

    def __init__(self, step, passes):
        self.step = step
        self.passes = passes
        self.measured_s = step.measured_s * passes
        self.predicted_s = step.predicted_s and step.predicted_s * passes


def baselines_of(steps):
    """{(kind, model, size, batch, devices): Baseline}, by the rows called "each"."""
    single = {(kind_of(step), *step.setting[4:6], step.batch, step.devices): step for step in steps if step.name == "each"}
    found = {}
    for key, step in single.items():
        candidates = [other for (*setting, batch, devices), other in single.items()
                      if (*setting, devices) == (*key[:3], key[4]) and step.batch % batch == 0 and batch <= step.batch and not other.row.get("recomputed")]
        best = max(candidates, key=lambda other: other.batch, default=step)
        found[key] = Baseline(best, step.batch // best.batch)
    return found


def baseline_of(step, baselines):
    return baselines.get((kind_of(step), *step.setting[4:6], step.batch, step.devices))


def speed_up(step, baseline):
    """As measured, in a row that states it or against the baseline."""
    return step.get("times") or (baseline and baseline.measured_s / step.measured_s)


def predicted_speed_up(step, baseline):
    return step.get("predicted_times") or (baseline and baseline.predicted_s and baseline.predicted_s / step.predicted_s)


# ---- two devices of unequal speed ----


def speed_share(both_s, fast_s, slow_s):
    """Of the sum of the speeds of two devices that take a step in fast_s and slow_s, what they reach together."""
    return 1 / both_s / (1 / fast_s + 1 / slow_s)


def uneven_of(path):
    """Of each pair of devices and workload: {"ratio", "size", "batch", "fast", "slow", "both": Step, "share", "predicted_share"}."""
    pairs = []
    for (ratio, *_), steps in by(steps_of(path), lambda step: step.setting).items():
        of = {step.name: step for step in steps}
        if not {"fast", "slow", "both"} <= of.keys():
            continue
        three = [of[name] for name in ("both", "fast", "slow")]
        pairs.append({"ratio": ratio, "size": of["both"].row["size"], "batch": of["both"].batch, **of,
                      "share": speed_share(*(step.measured_s for step in three)),
                      "predicted_share": speed_share(*(step.predicted_s for step in three))})
    return pairs


# ---- predictions ----


def ranks(values):
    """The place of each value, the mean place where several are equal."""
    return [sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2 for value in values]


def rank_correlation(x, y):
    """Spearman's; None of fewer than three."""
    if len(x) < 3:
        return None
    a, b = ranks(x), ranks(y)
    mean = (len(x) + 1) / 2
    xx, yy = sum((i - mean) ** 2 for i in a), sum((j - mean) ** 2 for j in b)
    return sum((i - mean) * (j - mean) for i, j in zip(a, b)) / (xx * yy) ** 0.5 if xx * yy else None


def memory_error(step):
    """Of the plan relative to the process, on the rank where it is largest."""
    planned = [int(value) for value in step.row["planned_bytes"].split()]
    peaks = [max(of_rank) for of_rank in zip(*step.peaks)]
    return max((abs(plan / peak - 1) for plan, peak in zip(planned, peaks)), default=0)


# ---- which devices were chosen ----


def choices_of(path):
    """{objective: {"cases", "best": how many were the best, "as_good": to 1 %, "mean", "most": excess, "tried", "sets": means, "share": of a run, the most}}, and of "all"."""
    found = by(rows_of(path), lambda row: row["objective"])
    return {name: {"cases": len(rows), "best": sum(row["best"] == row["chosen"] for row in rows),
                   "as_good": sum(float(row["excess"]) <= 0.01 for row in rows),
                   "mean": statistics.mean(float(row["excess"]) for row in rows), "most": max(float(row["excess"]) for row in rows),
                   "tried": statistics.mean(int(row["tried"]) for row in rows), "sets": statistics.mean(int(row["sets"]) for row in rows),
                   "share": max(float(row["trial_share"]) for row in rows)}
            for name, rows in {**found, "all": rows_of(path)}.items()}


def simulated_choices_of(path, *keys):
    """Of a CSV of choose_bench, {values of these columns: {"cases", "best", "within": shares, "excess", "trial_share", "lost_share", "trials", "tried": means,
    "most_excess", "most_trial_share"}}."""
    found = by(rows_of(path), lambda row: tuple(row[key] for key in keys))
    summaries = {}
    for values, rows in found.items():
        cases = sum(int(row["cases"]) for row in rows)
        summaries[values] = {
            "cases": cases, **{name: sum(int(row[name]) for row in rows) / cases for name in ("best", "within")},
            **{name: sum(int(row["cases"]) * float(row[name]) for row in rows) / cases for name in ("excess", "trial_share", "lost_share", "trials", "tried")},
            **{name: max(float(row[name]) for row in rows) for name in ("most_excess", "most_trial_share")}}
    return summaries


# ---- steps beside PyTorch ----


def peers_of(path):
    """Of each model, size, batch and number of threads: {"tessera", "measured", "torch": seconds (median, least, most),
    "times", "times_measured", "peak", "torch_peak": bytes}."""
    settings = {}
    for row in rows_of(path):
        setting = (pathlib.Path(row["model"]).stem, row["size"], int(row["batch"]), int(row["threads"]))
        settings.setdefault(setting, {}).setdefault(row["peer"], []).append(row)
    return [(setting, peer_summary(peers)) for setting, peers in settings.items() if any(peer.startswith("torch") for peer in peers)]


def peer_summary(peers):
    seconds, peaks, stated = {}, {}, {}
    for peer, rows in peers.items():
        rounds = [float(row["step_s"]) for row in rows if row["step_s"]]
        if rounds:
            least, most = (number(rows[0].get(column)) for column in ("least_s", "most_s"))
            seconds[peer] = (statistics.median(rounds), least or min(rounds), most or max(rounds))
        if any(row["peak_bytes"] for row in rows):
            peaks[peer] = max(int(row["peak_bytes"]) for row in rows if row["peak_bytes"])
        stated[peer] = number(rows[0].get("times_as_fast"))
    torch = min((value for peer, value in seconds.items() if peer.startswith("torch")), key=lambda value: value[0])
    own, measured = seconds["tessera"], seconds.get("tessera-measured")
    return {"tessera": own, "measured": measured, "torch": torch,
            "times": stated["tessera"] or torch[0] / own[0],
            "times_measured": measured and (stated["tessera-measured"] or torch[0] / measured[0]),
            "peak": peaks["tessera"], "torch_peak": min(value for peer, value in peaks.items() if peer.startswith("torch"))}
