#!/usr/bin/python3
"""Writes the tables of the READMEs from the result files of the benches, between their marker comments.

    bench/tables.py            writes them
    bench/tables.py --check    changes nothing; names the files that are not up to date, and exits with 1 if there are any
    bench/tables.py --list     the names of the tables

A table stands between <!-- table: NAME --> and <!-- end of table -->. Below it stands how its numbers were measured, from the origin
file beside the CSV.
"""

import argparse
import pathlib
import re
import statistics
import sys

from results import (MIB, all_steps, baseline_of, baselines_of, by, choices_of, memory_error, origin_of, peers_of, predicted_speed_up, rank_correlation,
                     rows_of, simulated_choices_of, speed_up, steps_of, uneven_of)

ROOT = pathlib.Path(__file__).resolve().parent.parent
BENCH = ROOT / "bench"
MARKER = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


# ---- numbers as text ----


def figures(value, count=3):
    """With so many significant digits, and all digits before the point: 40.0, 1776, 0.909."""
    if value is None:
        return ""
    exponent = int(f"{value:.{count - 1}e}".split("e")[1])
    return f"{value:.{max(0, count - 1 - exponent)}f}"


def fixed(value, decimals=2):
    return "" if value is None else f"{value:.{decimals}f}"


def percent(share, decimals=0):
    return "" if share is None else f"{100 * share:.{decimals}f} %"


def mib(size):
    return "" if not size else f"{size / MIB:.0f}"


def with_range(middle, least, most, text=figures):
    return text(middle) if None in (least, most) or least == most == middle else f"{text(middle)} ({text(least)} to {text(most)})"


def table(columns, rows):
    """columns: headings, those of text with a leading "<"."""
    lines = ["| " + " | ".join(column.lstrip("<") for column in columns) + " |",
             "| " + " | ".join("---" if column.startswith("<") else "---:" for column in columns) + " |"]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def origin_words(*paths):
    """How the numbers were measured: a line for each file."""
    lines = []
    for path in paths:
        origin = origin_of(path)
        words = [*origin["machine"], *(f"commit {commit}" for commit in origin["commit"]), *origin["date"], *origin.get("note", [])]
        lines.append(f"<sub>{', '.join(f'`{command}`' for command in origin['command'])}: {'; '.join(words)}.</sub>")
    return "\n" + "<br>\n".join(lines) + "\n"


NOT_MEASURED = "Not measured yet.\n"


# ---- the tables ----


def fashion():
    path = BENCH / "fashion.csv"
    return table(["seed", "test accuracy, 1 rank", "4 ranks", "largest difference of the loss, first 50 steps", "of means of 100 steps, whole run: largest", "mean"],
                 [[row["seed"], row["accuracy_1"] + " %", row["accuracy_4"] + " %", row["first_50_largest"], row["window_largest"], row["window_mean"]]
                  for row in rows_of(path)]) + origin_words(path)


def peers(name, with_model):
    path = BENCH / "peers" / name
    if not path.exists():
        return NOT_MEASURED
    rows = []
    for (model, size, batch, threads), found in peers_of(path):
        milliseconds = [with_range(*(1e3 * value for value in found[which])) if found[which] else "" for which in ("tessera", "measured", "torch")]
        rows.append([model if with_model else size, batch, threads, *milliseconds, fixed(found["times"]), fixed(found["times_measured"]), mib(found["peak"]),
                     mib(found["torch_peak"]), percent(found["peak"] / found["torch_peak"])])
    return table(["<model" if with_model else "<input", "batch", "threads", "Tessera, ms", "with measured kernels, ms", "PyTorch, ms", "times as fast",
                  "with measured kernels", "peak, MiB", "PyTorch's, MiB", "share"], rows) + origin_words(path)


def kernels():
    path = BENCH / "kernels/kernels.csv"
    of = {(row["pass"], row["threads"]): row for row in rows_of(path)}
    passes = list(dict.fromkeys(name for name, _ in of))
    return table(["<pass", "direct, 1 thread", "2 threads", "Winograd, 1 thread", "2 threads"],
                 [[name, *(of[name, threads][method] for method in ("direct", "winograd") for threads in "12")] for name in passes]) + origin_words(path)


def peers_detectors():
    path = BENCH / "peers/detectors.csv"
    rows = []
    for (model, size, batch, threads), of in by(rows_of(path), lambda row: (row["model"], row["size"], row["batch"], row["threads"])).items():
        seconds = {peer: [float(row["step_s"]) for row in rounds] for peer, rounds in by(of, lambda row: row["peer"]).items()}
        fastest = min((peer for peer in seconds if peer.startswith("torch")), key=lambda peer: statistics.median(seconds[peer]))
        own = statistics.median(seconds["tessera"])
        words = [with_range(*(1e3 * value for value in (statistics.median(found), min(found), max(found))))
                 for found in (seconds["tessera"], seconds["tessera-measured"], seconds[fastest], seconds["darknet"])]
        rows.append([pathlib.Path(model).stem, size, batch, threads, *words, fixed(statistics.median(seconds[fastest]) / own),
                     fixed(statistics.median(seconds["darknet"]) / own, 1)])
    return table(["<model", "input", "batch", "threads", "Tessera, ms", "with measured kernels, ms", "PyTorch, ms", "Darknet, ms", "times PyTorch",
                  "times Darknet"], rows) + origin_words(path)


def layer_kind(row):
    """What a layer of bench/layers/ is called in its table."""
    kind, *options = row["section"].split()
    of = dict(option.split("=") for option in options)
    if kind != "[convolutional]":
        return kind
    rows, cols = (of.get(f"size_{axis}", of.get("size", "1")) for axis in "yx")
    stride, groups = of.get("stride", "1"), int(of.get("groups", 1))
    if row["maps"].endswith("x1x1"):
        return "1x1 on one cell"
    grouped = "" if groups == 1 else ", depthwise" if row["maps"].split("x")[0] == str(groups) else f", {groups} groups"
    return (f"{rows}x{cols}" + grouped + ("" if stride == "1" else f", stride {stride}") + ("" if of.get("dilation", "1") == "1" else ", dilated")
            + (", " + of["activation"] if row["network"] == "others" else ""))


def layers_of():
    path = BENCH / "layers/times.csv"
    return rows_of(path) if path.exists() else []


def layers():
    groups = by(layers_of(), lambda row: (row["network"], row["batch"], layer_kind(row)))
    if not groups:
        return NOT_MEASURED
    rows = []
    for (network, batch, kind), of in groups.items():
        times = [float(row["times"]) for row in of]
        total = lambda *columns: 1e3 * sum(int(row["count"]) * float(row[column]) for row in of for column in columns)
        own, roof = total("forward_s", "backward_s"), total("roof_forward_s", "roof_backward_s")
        rows.append([network, batch, kind, len(of), figures(own), figures(total("torch_forward_s", "torch_backward_s")), fixed(statistics.geometric_mean(times)),
                     fixed(min(times)), sum(of_layer < 0.9 for of_layer in times) or "", figures(roof), percent(roof / own)])
    return table(["<network", "batch", "<kind", "layers", "all of them, ms", "PyTorch's, ms", "times as fast, mean", "least", "slower by over a tenth",
                  "roofline, ms", "part of it reached"], rows) + origin_words(BENCH / "layers/times.csv")


def layer_networks():
    """Sums over each network's layers."""
    rows = []
    for (network, batch), of in by(layers_of(), lambda row: (row["network"], row["batch"])).items():
        seconds = lambda row, prefix: int(row["count"]) * (float(row[prefix + "forward_s"]) + float(row[prefix + "backward_s"]))
        own, roof, torch = (sum(seconds(row, prefix) for row in of) for prefix in ("", "roof_", "torch_"))
        near = sum(seconds(row, "") for row in of if seconds(row, "roof_") >= 0.9 * seconds(row, ""))
        rows.append([network, batch, figures(1e3 * own), figures(1e3 * torch), fixed(torch / own), figures(1e3 * roof), percent(roof / own), percent(near / own),
                     fixed(torch / roof)])
    return table(["<network", "batch", "all layers, ms", "PyTorch's, ms", "times as fast", "roofline, ms", "part of it reached",
                  "of the time, in layers that reach 90 % of it", "PyTorch's by the roofline"], rows)


def slow_layers():
    rows = [[row["network"], row["batch"], row["maps"].replace("+", " + "), f"`{row['section']}`", figures(1e3 * float(row["forward_s"])),
             figures(1e3 * float(row["torch_forward_s"])), figures(1e3 * float(row["backward_s"])), figures(1e3 * float(row["torch_backward_s"])),
             fixed(float(row["times"]))] for row in layers_of() if float(row["times"]) < 0.9]
    return table(["<network", "batch", "<maps", "<layer", "forward, ms", "PyTorch's", "backward, ms", "PyTorch's", "times as fast"], rows)


def kernel_errors():
    path = BENCH / "kernels/errors.csv"
    return table(["layer", "<convolution", "<pass", "direct", "winograd2", "winograd4"], [row.values() for row in rows_of(path)]) + origin_words(path)


def several_of(path, name=None):
    """[(step, its baseline, the row "each" of the same batch)] of what several devices did, or of those partitions of this name."""
    steps = steps_of(path)
    baselines = baselines_of(steps)
    single = {(step.row["cluster"], step.batch): step for step in steps if step.name == "each"}
    return [(step, baseline_of(step, baselines), single.get((step.row["cluster"], step.batch))) for step in steps
            if step.name != "each" and step.devices > 1 and name in (None, step.name)]


def link_bound(step, baseline, single):
    """How many times as fast as the baseline a step is if its busiest link is all that takes time."""
    if step.get("link_bound"):
        return step.get("link_bound") * baseline.measured_s / single.measured_s
    seconds = 8e-6 * (step.get("busiest_bytes") or 0) / float(step.row["rate_mbit"])
    return baseline.measured_s / seconds if seconds else None


def speed(*names, devices=False):
    paths = [BENCH / "speed" / name for name in names]
    rows = []
    for path in paths:
        for step, baseline, single in several_of(path, "auto"):
            rows.append(([step.devices] if devices else []) + [
                step.batch, figures(single.measured_s) + (" *" if single.row.get("recomputed") else ""), figures(single.predicted_s), figures(step.measured_s),
                figures(step.predicted_s), fixed(speed_up(step, baseline)), fixed(predicted_speed_up(step, baseline)), fixed(step.get("work_bound"))]
                + ([] if devices else [figures(link_bound(step, baseline, single))]))
    return table((["devices"] if devices else []) + ["batch", "one device, s", "predicted", "`auto`, s", "predicted", "speed-up", "predicted", "bound of the work"]
                 + ([] if devices else ["bound of the link"]), rows) + origin_words(*paths)


def loss(seconds, step):
    return "" if seconds is None else f"{seconds:.2f} ({100 * seconds / step.measured_s:.0f} %)"


def losses(name):
    path = BENCH / "speed" / name
    rows = []
    for step, baseline, _ in several_of(path, "auto"):
        even = baseline.measured_s / step.devices
        rest = [step.spent(part) if step.row.get(part + "_s") else None for part in ("maps", "statistics", "sums")]
        more = step.get("more_computing_s")
        if baseline.passes > 1 or more is None:
            more = step.measured_s - even - sum(filter(None, rest)) - step.spent("idle")
        rows.append([step.batch, figures(step.measured_s), figures(even), *(loss(seconds, step) for seconds in (more, *rest))])
    return table(["batch", "step, s", "even share of one device", "more computing", "exchange of maps", "batch statistics", "gradient reduction"], rows)


def detectors():
    """Whole detectors: a line for one device and one for all of them."""
    path = BENCH / "speed/detectors.csv"
    if not path.exists():
        return NOT_MEASURED
    steps = list(all_steps(path))
    single = {(step.row["model"], step.batch): step for step in steps if step.name == "each"}
    rows = []
    for step in steps:
        one = single.get((step.row["model"], step.batch))
        alone = step is one
        times = "" if alone or not one or not one.rounds or not step.rounds else fixed(one.measured_s / step.measured_s)
        rows.append([step.row["model"], 1 if alone else step.devices, figures(step.predicted_s), figures(step.measured_s) if step.rounds else "",
                     times, "" if alone or not one else fixed(one.predicted_s / step.predicted_s), mib(step.planned_bytes), mib(step.peak_bytes) if step.rounds else "",
                     "" if alone else mib(step.get("bytes"))])
    return table(["<model", "devices", "predicted, s", "measured, s", "times one device", "predicted", "planned, MiB", "peak, MiB", "sent, MiB"],
                 rows) + origin_words(path)


def speed_by_rate(name):
    path = BENCH / "speed" / name
    rows = [[step.row["rate_mbit"], step.batch, step.name, figures(step.predicted_s), with_range(step.measured_s, step.get("least_s"), step.get("most_s")),
             step.row.get("times") or fixed(speed_up(step, baseline)), f"{step.get('bytes') / MIB:.0f}"] for step, baseline, _ in several_of(path)]
    return table(["link, Mbit/s", "batch", "<partition", "predicted, s", "measured, s", "times one device", "sent, MiB"], rows) + origin_words(path)


def grouping_words(name):
    """With the commas that the CSV has no room for."""
    if not re.match(r"\d+(-\d+)?( \d| the rest|$)", name):
        return name
    layers, rest, _ = name.partition(" the rest alone")
    return ", ".join(layers.split()) + (", the rest alone" if rest else "")


def group_size(rate):
    path = BENCH / "group_size/group_size.csv"
    steps = [step for step in steps_of(path) if step.row["rate_mbit"] == rate]
    chosen = sorted((step for step in steps if step.name != "auto"), key=lambda step: step.measured_s)
    rows = []
    for step in [*chosen, *(step for step in steps if step.name == "auto")]:
        redundant = step.spent("computing") * (step.get("redundant") or 0)
        words = "`auto`" if step.name == "auto" else f"**{grouping_words(step.name)}**" if step is chosen[0] else grouping_words(step.name)
        rows.append([words, with_range(step.measured_s, *step.range_s, text=fixed), fixed(step.predicted_s), fixed(step.spent("computing") - redundant), fixed(redundant),
                     *(fixed(step.spent(part)) for part in ("maps", "statistics", "sums", "idle"))])
    return table(["<groups", "measured, s", "predicted, s", "computing", "redundant", "maps", "statistics", "gradients", "idle"], rows)


def group_size_verdict():
    """Whether `auto` is faster than every grouping of the cut, setting by setting."""
    steps = steps_of(BENCH / "group_size/group_size.csv")
    rows, won = [], 0
    rates = sorted({step.row["rate_mbit"] for step in steps}, key=float, reverse=True)
    for rate in rates:
        here = [step for step in steps if step.row["rate_mbit"] == rate]
        auto = next(step for step in here if step.name == "auto")
        best = min((step for step in here if step.name != "auto"), key=lambda step: step.measured_s)
        won += auto.measured_s < best.measured_s
        rows.append([rate, fixed(auto.measured_s), f"{fixed(best.measured_s)} ({grouping_words(best.name)})", fixed(auto.measured_s / best.measured_s)])
    return (f"**`--partition auto` is faster than every grouping in {'all' if won == len(rates) else won} of {len(rates)} settings:**\n\n" +
            table(["link, Mbit/s", "`auto`, s", "fastest grouping, s", "times as long"], rows))


def origin_of_group_size():
    return origin_words(BENCH / "group_size/group_size.csv").lstrip("\n")


def setting_words(step):
    return ", ".join([step.row["cluster"], *([f"{step.row['rate_mbit']} Mbit/s"] if step.row.get("rate_mbit") else [])])


def errors_of(steps):
    """Of their predictions, relative to what was measured."""
    return [step.predicted_s / step.measured_s - 1 for step in steps]


def summary_of_errors(title, workload, steps):
    """Of the predictions of some partitions: a row as a file of such rows has it."""
    errors = [abs(error) for error in errors_of(steps)]
    memory = [memory_error(step) for step in steps]
    correlation = rank_correlation([step.predicted_s for step in steps], [step.measured_s for step in steps])
    return {"setting": title, **dict(zip(("model", "size", "batch"), workload)), "partitions": len(steps), "median_error": statistics.median(errors),
            "largest_error": max(errors), "rank_correlation": "" if correlation is None else f"{correlation:.2f}", "memory_median_error": statistics.median(memory),
            "memory_largest_error": max(memory)}


def prediction_rows():
    path = BENCH / "prediction/prediction.csv"
    rows = rows_of(path)
    if "measured_s" not in rows[0]:
        return rows
    steps = steps_of(path)
    return [*(summary_of_errors(setting_words(group[0]), group[0].setting[4:], group) for group in by(steps, lambda step: step.setting).values()),
            summary_of_errors("all", ("", "", ""), steps)]


def prediction_pairs():
    """By cluster: how right predictions are of pairs of network and partition that are kept apart."""
    path = BENCH / "prediction/pairs.csv"
    groups = by(steps_of(path), lambda step: step.row["cluster"])
    everything = [step for group in groups.values() for step in group]
    rows = []
    for title, steps in [*sorted(groups.items()), ("all", everything)]:
        errors = errors_of(steps)
        memory = [memory_error(step) for step in steps]
        share = lambda values, most: percent(sum(abs(value) <= most for value in values) / len(values))
        rows.append([title, len(steps), percent(statistics.median(errors), 1), percent(statistics.median(map(abs, errors)), 1), percent(max(errors, key=abs), 1),
                     share(errors, 0.1), share(memory, 0.05), percent(max(memory), 1)])
    return table(["<devices", "pairs", "median", "median error", "furthest", "within 10 %", "memory within 5 %", "furthest"], rows) + origin_words(path)


def workload_words(row):
    return f"`{row['model']}`, {row['size']}, {row['batch']}" if row["model"] else ""


def prediction():
    rows = [[row["setting"], workload_words(row), row["partitions"], percent(float(row["median_error"]), 1), percent(float(row["largest_error"]), 1),
             row["rank_correlation"], percent(float(row["memory_median_error"]), 1), percent(float(row["memory_largest_error"]), 1)] for row in prediction_rows()]
    return table(["<devices", "<model, input, batch", "partitions", "median error", "largest", "Spearman's rank correlation", "memory: median error", "largest"],
                 rows) + origin_words(BENCH / "prediction/prediction.csv")


def summary_of_choice(steps):
    chosen, fastest = next(step for step in steps if step.name == "auto"), min(steps, key=lambda step: step.measured_s)
    summary = {"setting": setting_words(chosen), **dict(zip(("model", "size", "batch"), chosen.setting[4:])), "partitions": len(steps),
               "predicted_s": chosen.predicted_s, "fastest": "" if fastest is chosen else fastest.name, "ratio": chosen.measured_s / fastest.measured_s}
    for name, step in (("chosen", chosen), ("fastest", fastest)):
        if step is chosen and name == "fastest":
            continue
        summary.update({f"{name}_s": step.measured_s, f"{name}_least_s": step.range_s[0], f"{name}_most_s": step.range_s[1]})
    return summary


def choice_rows():
    path = BENCH / "choice/choice.csv"
    rows = rows_of(path)
    if "measured_s" not in rows[0]:
        return rows
    groups = by(steps_of(path), lambda step: step.setting).values()
    return [summary_of_choice(group) for group in groups if any(step.name == "auto" for step in group)]


def choice():
    rows = []
    for row in choice_rows():
        chosen, fastest = ([float(row[f"{name}{end}"]) if row.get(f"{name}{end}") not in (None, "") else None for end in ("_s", "_least_s", "_most_s")]
                           for name in ("chosen", "fastest"))
        rows.append([row["setting"], workload_words(row), row["partitions"], fixed(float(row["predicted_s"])), with_range(*chosen, text=fixed),
                     row["fastest"] and f"`{row['fastest']}`", with_range(*fastest, text=fixed), fixed(float(row["ratio"]))])
    return table(["<setting", "<model, input, batch", "partitions", "predicted, s", "chosen, s", "<fastest", "s", "chosen / fastest"],
                 rows) + origin_words(BENCH / "choice/choice.csv")


def device_choice():
    path = BENCH / "heterogeneous/choice.csv"
    if not path.exists():
        return NOT_MEASURED
    rows = [[name, of["cases"], percent(of["best"] / of["cases"]), percent(of["as_good"] / of["cases"]), percent(of["mean"], 1), percent(of["most"], 1),
             f"{of['tried']:.1f}", f"{of['sets']:.1f}", percent(of["share"], 1)] for name, of in choices_of(path).items()]
    return table(["<objective", "cases", "the best was chosen", "or as good to 1 %", "worse than the best, mean", "most", "sets tried", "of",
                  "trials, most of a run"], rows) + origin_words(path)


def simulated_choice(headings, words, *keys, only=lambda values: True):
    """What choose_bench found with the chooser of before and with that of now."""
    paths = [BENCH / "choice" / name for name in ("simulated_before.csv", "simulated.csv")]
    if not all(path.exists() for path in paths):
        return NOT_MEASURED
    before, now = (simulated_choices_of(path, *keys) for path in paths)
    rows = []
    for values, of in now.items():
        if only(values):
            both = (before[values], of)
            rows.append([*words(values), *(percent(each["best"], 1) for each in both), *(percent(each["within"], 1) for each in both),
                         *(percent(each["excess"], 2) for each in both), *(percent(each["most_excess"]) for each in both),
                         *(percent(each["trial_share"], 2) for each in both), percent(of["most_trial_share"], 1), percent(of["lost_share"], 2), f"{of['trials']:.1f}",
                         f"{of['tried']:.1f}"])
    return table([*headings, "the best, before", "now", "to 1 %, before", "now", "excess, before", "now", "most, before", "now", "trials, before", "now",
                  "at most", "lost", "trials", "sets"], rows)


def simulated_by_spread():
    def words(values):
        return [percent(float(value)) for value in values]

    return simulated_choice(["error", "noise"], words, "error", "noise") + origin_words(
        *(path for path in (BENCH / "choice/simulated_before.csv", BENCH / "choice/simulated.csv") if path.exists()))


def simulated_by_objective():
    return simulated_choice(["<objective"], lambda values: values[2:], "error", "noise", "objective", only=lambda values: values[:2] == ("0.2", "0.05"))


def scale():
    path = BENCH / "planner/scale.csv"
    parts = ("computing", "maps", "statistics", "gradients", "idle")
    first, rows = {}, []
    for row in rows_of(path):
        step_s = float(row["step_s"])
        first.setdefault(row["pixels"], step_s)
        shares = [float(row[part]) if part in row else float(row[part + "_s"]) / step_s for part in parts]
        speed_up_text = row.get("speed_up") or figures(first[row["pixels"]] / step_s)
        if row["devices"] in ("1", "16", "64", "128", "256", "1024", "4096"):
            rows.append([row["pixels"], row["devices"], figures(step_s), speed_up_text, *map(percent, shares), f"{float(row['planning_s']):.1f}"])
    return table(["pixels", "devices", "step, s", "speed-up", "computing", "maps", "statistics", "gradients", "idle", "planning, s"], rows) + origin_words(path)


def search():
    path = BENCH / "planner/search.csv"
    found = {}
    for row in rows_of(path):
        found.setdefault(tuple(row[key] for key in ("model", "pixels", "devices", "kinds")), {})[row["program"]] = row
    rows = []
    for what, programs in found.items():
        took = {name: figures(float(row["seconds"])) if row["seconds"] else "none" for name, row in programs.items()}
        now = programs["now"]
        numbers = [round(int(now["peak_kib"]) / 1024), figures(float(now["step_s"]))] if now["seconds"] else ["", ""]
        rows.append([*what, took.get("before", ""), took["now"], *numbers])
    return table(["<model", "pixels", "devices", "kinds", "before, s", "processor time, s", "peak, MiB", "step, s"], rows) + origin_words(path)


MEMORY_NAMES = {"tessera": "Tessera", "tessera-least": "Tessera, `--objective memory`", "torch": "PyTorch, the better memory format", "darknet": "Darknet (Debian's)"}


def memory_of():
    """{(name, devices): {batch: Step}}; of PyTorch's formats the one that takes less."""
    found = {}
    for step in all_steps(BENCH / "memory/memory.csv"):
        name = "torch" if step.name.startswith("torch") else step.name
        of = found.setdefault((name, step.devices), {})
        if step.batch not in of or step.peak_bytes < of[step.batch].peak_bytes:
            of[step.batch] = step
    return found


def memory():
    found = memory_of()
    batches = sorted({batch for of in found.values() for batch in of})
    rows = [[MEMORY_NAMES.get(name, name), devices, *(text for batch in batches for text in (mib(of[batch].planned_bytes), mib(of[batch].peak_bytes)))]
            for (name, devices), of in found.items()]
    return table(["<", "processes", *(heading for batch in batches for heading in (f"batch {batch}: planned, MiB", "peak, MiB"))],
                 rows) + origin_words(BENCH / "memory/memory.csv")


def monitor(kind):
    path = BENCH / "monitor/monitor.csv"
    rows = []
    for row in rows_of(path):
        if row["kind"] != kind:
            continue
        reference, measured = float(row["reference"]), float(row["measured"])
        spread = f"{figures(float(row['least']), 4)} to {figures(float(row['most']), 4)}" if row["least"] else ""
        rows.append([row["setting"], row["what"], figures(reference, 4), figures(measured, 4)]
                    + ([spread, row["count"]] if kind == "cost" else [percent(measured / reference - 1, 2)]))
    headings = ["without, or bound", "with", "quartiles", "pairs"] if kind == "cost" else ["reference", "recorded", "difference"]
    return table(["<setting", "<what", *headings], rows) + (origin_words(path) if kind == "cost" else "")


def pictures():
    path = BENCH / "pictures/pictures.csv"
    if not path.exists():
        return NOT_MEASURED
    rows = []
    first = {}
    for row in rows_of(path):
        waiting = float(row["waiting_s"])
        share = waiting / first.setdefault(row["cache"], waiting)
        rows.append([row["cache"], row["epoch"], figures(waiting), f"{figures(float(row['least_s']))} to {figures(float(row['most_s']))}",
                     figures(float(row["step_s"])), percent(share, 1), "" if row["epoch"] == "1" or row["cache"] == "off" else "10 %"])
    return table(["<--cache", "epoch", "waiting for pictures, s", "least to most", "mean step, s", "share of the first epoch", "bound"],
                 rows) + origin_words(path)


PART_WORDS = {"maps": "maps", "statistics": "batch statistics", "sums": "gradients", "idle": "the other device"}


def largest_loss(step):
    """What a mean device waits for most, and for what share of the step."""
    part = max(PART_WORDS, key=step.spent)
    return f"{PART_WORDS[part]}, {percent(step.spent(part) / step.measured_s)}"


def uneven():
    path = BENCH / "heterogeneous/uneven.csv"
    if not path.exists():
        return NOT_MEASURED
    rows = [[f"{pair['size']}, {pair['batch']}", pair["ratio"], figures(pair["fast"].measured_s), figures(pair["slow"].measured_s),
             with_range(pair["both"].measured_s, *pair["both"].range_s), figures(pair["both"].predicted_s), percent(pair["share"], 1),
             percent(pair["predicted_share"], 1), largest_loss(pair["both"])] for pair in uneven_of(path)]
    return table(["<input, batch", "speeds", "faster alone, s", "slower alone, s", "both, s", "predicted", "share of the sum of speeds", "predicted",
                  "<waits most for"], rows) + origin_words(path)


# ---- beside Park, Lee and Kim ----

PUBLISHED = BENCH / "heterogeneous/park_published.csv"


def published(name, setting=None):
    return [row for row in rows_of(PUBLISHED) if row["table"] == name and setting in (None, row["setting"])]


def park(part, model=None):
    """Our runs of a part, or none."""
    path = BENCH / "heterogeneous/park.csv"
    rows = rows_of(path) if path.exists() else []
    return [row for row in rows if row["part"] == part and model in (None, row["model"])]


def seconds_of(row, first):
    """Seconds of a run, and how many times as long as on one device."""
    return [figures(float(row["elapsed_s"])), fixed(float(row["elapsed_s"]) / float(first["elapsed_s"]))] if row else ["", ""]


def accuracy_of(row):
    return percent(float(row["accuracy"]), 1) if row and row["accuracy"] else ""


def ours_by_devices(part, model):
    """{devices: [the run with their way of synchronising, that with auto]}; of one device twice the same."""
    found = by(park(part, model), lambda row: int(row["devices"]))
    return {devices: [rows[0], rows[-1]] for devices, rows in sorted(found.items())}


def park_devices(model, setting):
    ours = ours_by_devices("devices", model)
    if not ours:
        return NOT_MEASURED
    theirs = {int(row["devices"]): row for row in published("devices", setting)}
    first = ours[min(ours)][0]
    rows = [[devices, *seconds_of(theirs.get(devices), theirs[1]), accuracy_of(theirs.get(devices)), *seconds_of(way, first), accuracy_of(way),
             *seconds_of(auto, first), accuracy_of(auto), auto["working"]] for devices, (way, auto) in ours.items()]
    return table(["devices", "published, s", "times one", "accuracy", f"{ours[max(ours)][0]['way']}, s", "times one", "accuracy", "`auto`, s", "times one", "accuracy",
                  "devices with work"], rows) + (origin_words(BENCH / "heterogeneous/park.csv") if setting == "2" else "")


def park_shared():
    ours = ours_by_devices("shared", "lenet5")
    if not ours:
        return NOT_MEASURED
    rows = [[devices, way["batch"], *(milliseconds(way[column]) for column in ("step_s", "predicted_s", "star_s")), milliseconds(auto["step_s"]),
             milliseconds(auto["predicted_s"]), auto["working"], accuracy_of(way), accuracy_of(auto)] for devices, (way, auto) in ours.items()]
    way = ours[max(ours)][0]["way"]
    return table(["devices", "images per step", f"{way}, ms", "predicted", "of a star alone", "`auto`, ms", "predicted", "devices with work", f"accuracy, {way}",
                  "`auto`"], rows)


def milliseconds(text):
    return figures(1e3 * float(text)) if text else ""


def park_depth():
    ours = park("depth")
    if not ours:
        return NOT_MEASURED
    rows = [[row["layers"], int(row["batch"]) // int(row["devices"]), milliseconds(row["step_s"]), percent(float(row["busy"])), mib(float(row["memory_bytes"])),
             *(f"{float(row[column + '_bytes_per_s']) / 1000:.0f}" for column in ("received", "sent"))] for row in ours]
    return table(["layers", "images per device", "step, ms", "busy", "memory, MiB", "received, KB/s", "sent, KB/s"], rows)


def park_depth_published():
    rows = [[row["setting"], row["processor_percent"] + " %", row["memory_mb"], row["received_kb"], row["sent_kb"]] for row in published("depth")]
    return table(["<published setting", "processor", "memory, MB", "received, KB", "sent, KB"], rows)


def park_epochs():
    ours = {row["epoch"]: row for row in park("epochs")}
    if not ours:
        return NOT_MEASURED
    theirs = {row["epoch"]: row for row in published("epochs")}
    rows = [[epoch, *seconds_of(theirs.get(epoch), theirs["1"]), accuracy_of(theirs.get(epoch)), *seconds_of(row, ours["1"]), accuracy_of(row)]
            for epoch, row in ours.items()]
    return table(["epochs", "published, s", "times one", "accuracy", "ours, s", "times one", "accuracy"], rows)


def park_synchronisation():
    ours = park("synchronisation")
    if not ours:
        return NOT_MEASURED
    rows = [[row["model"], f"`{row['way']}`", figures(float(row["elapsed_s"])), milliseconds(row["step_s"]), milliseconds(row["predicted_s"]), accuracy_of(row),
             percent(float(row["busy"])), f"{float(row['sent_bytes_per_s']) / 1000:.0f}"] for row in ours]
    return table(["<model", "<synchronisation", "time, s", "step, ms", "predicted", "accuracy", "busy", "sent, KB/s"], rows)


VARIANT_WORDS = {"full": "all layers, from random weights"}


def detection(name):
    """A row for each number of ranks: means over seeds."""
    path = BENCH / "detection" / name
    if not path.exists():
        return NOT_MEASURED
    rows = []
    for ranks, of in by(rows_of(path), lambda row: row["ranks"]).items():
        mean = lambda key: statistics.mean(float(row[key]) for row in of)
        precisions = sorted(float(row["map50"]) for row in of)
        spread = "" if len(of) == 1 else f" ({percent(precisions[0], 1)} to {percent(precisions[-1], 1)})"
        rows.append([ranks, of[0]["steps"], int(of[0]["steps"]) * int(of[0]["batch"]), len(of), percent(mean("map50"), 1) + spread,
                     percent(mean("map"), 1), fixed(mean("elapsed_s") / 60, 1), fixed(mean("processor_s") / 60, 1)])
    return table(["ranks", "steps", "images", "seeds", "mAP@.5", "mAP@.5:.95", "elapsed, min", "processor time, min"], rows) + origin_words(path)


def trunk_cache():
    """Runs behind frozen layers, whose maps are computed for every step or kept."""
    path = BENCH / "trunk_cache.csv"
    if not path.exists():
        return NOT_MEASURED
    rows = []
    for model, of in by(rows_of(path), lambda row: row["model"]).items():
        seconds = {how: [statistics.median(float(row[key]) for row in rounds) for key in ("steps_s", "run_s")]
                   for how, rounds in by(of, lambda row: row["trunk_cache"]).items()}
        for how, took in seconds.items():
            same = all(row["same_bytes"] == "yes" for row in of if row["trunk_cache"] == how)
            times = lambda part: "" if how == "off" else fixed(seconds["off"][part] / took[part], 1)
            rows.append([model, how, fixed(took[0], 1), times(0), fixed(took[1], 1), times(1), "" if how == "off" else "yes" if same else "no"])
    return table(["<model", "<maps kept", "steps, s", "times as fast", "run, s", "times as fast", "same checkpoint"], rows) + origin_words(path)


def fine_tuning():
    """Medians over the seeds, and what "full" of the same seed is to each."""
    path = BENCH / "fine_tuning.csv"
    runs = by((row for row in rows_of(path) if row["variant"] != "trunk"), lambda row: row["variant"])
    full = {row["seed"]: row for row in runs["full"]}

    def median(variant, column):
        return statistics.median(float(row[column]) for row in runs[variant])

    def share(variant, column):
        return statistics.median(float(row[column]) / float(full[row["seed"]][column]) for row in runs[variant])

    rows = []
    for variant, of in runs.items():
        words = VARIANT_WORDS.get(variant) or f"behind layer {of[0]['frozen']}, the trunk frozen"
        points = statistics.median(float(row["accuracy"]) - float(full[row["seed"]]["accuracy"]) for row in of)
        rows.append([words, len(of), percent(median(variant, "accuracy"), 2), f"{100 * points:+.2f}", figures(median(variant, "processor_s")),
                     percent(share(variant, "processor_s")), fixed(median(variant, "network_bytes") / MIB), percent(share(variant, "network_bytes"))])
    return table(["<trained", "seeds", "accuracy", "points", "processor time, s", "share", "memory of the network, MiB", "share"], rows) + origin_words(path)


def means_over_seeds(path, kinds):
    """[(kind, devices, imbalance, rows of all seeds)] of a simulation, in the order of the file."""
    rows = [row for row in rows_of(path) if row["kind"] in kinds]
    return [(*key, group) for key, group in by(rows, lambda row: (row["kind"], int(row["devices"]), float(row["imbalance"]))).items()]


def times_faster(rows, column):
    return statistics.mean(float(row["unmoved_s"]) / float(row[column]) for row in rows)


def largest_gap(rows, column):
    return max(1 - float(row["bound_s"]) / float(row[column]) for row in rows)


def milliseconds_at_most(rows, column):
    return figures(1e3 * max(float(row[column]) for row in rows), 2)


def balance():
    path = BENCH / "heterogeneous/balance/balance.csv"
    rows = [[{"links": "data and links", "all": "data, links and speeds"}.get(kind, kind), devices, f"{imbalance:g}", fixed(times_faster(group, "exact_s")),
             fixed(times_faster(group, "greedy_s")), percent(largest_gap(group, "exact_s"), 2), percent(largest_gap(group, "greedy_s"), 2),
             milliseconds_at_most(group, "exact_solve_s"), milliseconds_at_most(group, "greedy_solve_s")]
            for kind, devices, imbalance, group in means_over_seeds(path, ("data", "speeds", "links", "all")) if imbalance in (4, 16) and devices in (5, 20, 100)]
    return table(["<unlike", "devices", "largest / smallest", "times as fast, exact", "greedy", "gap, exact", "greedy", "found in, ms, exact", "greedy"],
                 rows) + origin_words(path)


def balance_classes():
    path = BENCH / "heterogeneous/balance/balance.csv"
    rows = [[devices, group[0]["classes"], f"{imbalance:g}", fixed(times_faster(group, "exact_s")), fixed(times_faster(group, "any_class_s")),
             percent(statistics.mean(float(row["exact_s"]) / float(row["any_class_s"]) - 1 for row in group), 2), percent(largest_gap(group, "exact_s"), 3),
             milliseconds_at_most(group, "exact_solve_s")] for _, devices, imbalance, group in means_over_seeds(path, ("classes",))]
    return table(["devices", "classes", "largest / smallest", "times as fast, all classes alike", "any class", "time lost to classes", "gap", "found in, ms"], rows)


def balance_cbc():
    path = BENCH / "heterogeneous/balance/cbc.csv"
    rows = []
    for (charge, devices), group in by(rows_of(path), lambda row: (row["charge"], row["devices"])).items():
        proved = [row for row in group if row["cbc_optimal"] == "1"]
        longer = [float(row["cbc_s"]) / float(row["tessera_s"]) - 1 for row in group if row["cbc_s"]]
        rows.append([{"latency": "latencies", "shards": "whole shards"}[charge], devices, len(group), len(proved),
                     f"{fixed(100 * min(longer))} to {percent(max(longer), 2)}", percent(largest_gap([{"bound_s": row["bound_s"], "total": row["tessera_s"]} for row in group], "total"), 2),
                     milliseconds_at_most(group, "solve_s"), figures(statistics.median(float(row["cbc_solve_s"]) for row in group), 2)])
    return table(["<with", "devices", "problems", "proved by CBC", "longer by CBC", "gap", "found in, ms at most", "CBC, s, median"], rows) + origin_words(path)


def balance_measured():
    path = BENCH / "heterogeneous/balance/measured.csv"
    if not path.exists():
        return NOT_MEASURED
    columns = ("predicted_s", "planned_s", "measured_s")
    rows, unmoved = [], {}
    for (setting, what), group in by(rows_of(path), lambda row: (row["setting"], row["what"])).items():
        of = [statistics.median(float(row[column]) for row in group) if group[0][column] else None for column in columns]
        unmoved.setdefault(setting, of)
        faster = [fixed(before / now) for before, now in zip(unmoved[setting], of)] if what == "moving and training" else [""] * len(columns)
        rows.append([f"`{setting.split()[-1]}`", what, *map(figures, of), *faster])
    return table(["<model", "<what", "predicted, s", "with what steps exchange", "measured, s", "times as fast, predicted", "with exchange", "measured"],
                 rows) + origin_words(path)


def profile():
    path = BENCH / "profile.csv"
    return table(["<part", "share", "<what would remain"], [[row["part"], percent(float(row["share"])), row["remark"]] for row in rows_of(path)]) + origin_words(path)


def darknet_steps():
    """The largest difference over all ranks."""
    path = BENCH / "darknet" / "full_steps.csv"
    words = {"single": "single precision, Darknet as installed", "double": "double precision on both sides", "darknet": "Darknet as installed, Darknet in double precision"}
    columns = ["outputs", "deltas", "loss", "weights", "biases_scales", "statistics"]
    found = {}
    for row in rows_of(path):
        found.setdefault((row["model"], row["size"], row["compared"]), []).append(row)
    return table(["<model", "<input", "<what is compared", "ranks", *(column.replace("_", ", ") for column in columns)],
                 [[f"`{model}`", size.replace("x", " x "), words[compared], "" if compared == "darknet" else ", ".join(row["ranks"] for row in rows),
                   *(max((row[column] for row in rows), key=float) for column in columns)]
                  for (model, size, compared), rows in found.items()]) + origin_words(path)


def accuracy(data):
    path = BENCH / "accuracy_kernels.csv"
    rows = [(row["seed"], float(row["direct"]), float(row["winograd"])) for row in rows_of(path) if row["data"] == data]
    rows.append(("mean", *(statistics.mean(row[column] for row in rows) for column in (1, 2))))
    return table(["seed", "direct", "Winograd", "difference"], [[seed, f"{a:.2f} %", f"{b:.2f} %", f"{b - a:+.2f}"] for seed, a, b in rows])


def origin_of_accuracy():
    return origin_words(BENCH / "accuracy_kernels.csv").lstrip("\n")


def synchronisation():
    path = BENCH / "heterogeneous/synchronisation.csv"
    if not path.exists():
        return NOT_MEASURED
    rows, exact = [], None
    for (sync, compression), runs in by(rows_of(path), lambda row: (row["sync"], row["compression"])).items():
        accuracies = [float(run["accuracy"]) for run in runs]
        sent = statistics.mean(float(run["sent_bytes"]) / float(run["steps"]) for run in runs)
        exact = exact or sent
        rows.append([f"`{sync}`", f"`{compression}`", f"{sent / 1024:.1f}", percent(sent / exact, 1), percent(statistics.mean(accuracies), 2),
                     f"{percent(min(accuracies), 2)} to {percent(max(accuracies), 2)}"])
    return table(["<`--sync`", "<`--gradient-precision`", "sent per step, KiB", "share", "test accuracy, mean of seeds", "range"], rows) + origin_words(path)


# ---- the table of the main README ----


def between(values, text):
    least, most = text(min(values)), text(max(values))
    return least if least == most else f"{least} to {most}"


def results():
    early = [found for _, found in peers_of(BENCH / "peers/sid-early.csv")]
    others = {}
    for (model, *_), found in peers_of(BENCH / "peers/sid.csv"):
        others.setdefault(model, []).append(found["times"])
    six = several_of(BENCH / "speed/speed.csv", "auto")
    memories = memory_of()
    most_batch = max(memories["tessera", 1])
    small, least = (memories[name, 6][most_batch].peak_bytes for name in ("tessera", "tessera-least"))
    everything = next(row for row in prediction_rows() if row["setting"] == "all")
    apart = errors_of(steps_of(BENCH / "prediction/pairs.csv"))
    ratios = [float(row["ratio"]) for row in choice_rows()]
    rows = [
        ["A training step on one device, the early layers of YOLOv2, 416x416 and 608x608, batch 1 and 4",
         f"{between([found['times'] for found in early], fixed)} times as fast as PyTorch 2.14 or 1.13, whichever is faster, in "
         f"{between([found['peak'] / found['torch_peak'] for found in early], percent)} of its memory", "[steps](bench/peers/README.md#beside-todays-pytorch)"],
        ["The same of " + ", ".join(sorted(others)), f"{between([times for of in others.values() for times in of], fixed)} times as fast",
         "[steps](bench/peers/README.md#beside-todays-pytorch)"],
        ["Those layers at 608x608 on six emulated Raspberry Pi 3 with links of 100 Mbit/s",
         ", ".join(f"{speed_up(step, baseline):.1f}" for step, baseline, _ in six) + " times as fast as on one, for batches of " + ", ".join(
             str(step.batch) for step, _, _ in six), "[speed](bench/README.md#how-much-faster-several-devices-train)"],
        [f"Peak memory of each of the six, batch {most_batch}", f"{mib(small)} MiB, or {mib(least)} with `--objective memory`; on one device PyTorch takes "
         f"{mib(memories['torch', 1][most_batch].peak_bytes)} MiB", "[memory](bench/README.md#what-each-device-needs)"],
        [f"What `--partition auto` chooses, {len(ratios)} settings of two to six devices",
         f"at most {max(ratios):.2f} times the step time of the fastest partition that was measured", "[choice](bench/README.md#is-what-is-chosen-the-fastest)"],
        [f"Predicted against measured step times, {everything['partitions']} partitions",
         f"{percent(float(everything['median_error']), 1)} apart in the median, {percent(float(everything['largest_error']))} at most; planned memory within "
         f"{percent(float(everything['memory_largest_error']), 1)}", "[prediction](bench/README.md#how-right-predictions-are)"],
        [f"The same of {len(apart)} pairs of small networks, most of them random, and partitions that the model was not tuned on, on one to six emulated devices",
         f"{percent(statistics.median(map(abs, apart)), 1)} apart in the median, {percent(sum(abs(error) <= 0.1 for error in apart) / len(apart))} within 10 %",
         "[pairs](bench/prediction/README.md#pairs-kept-apart)"],
    ]
    return table(["<what", "<result", "<details"], rows)


def pi_rows():
    return rows_of(BENCH / "pi/step_times.csv")


def pi_seconds(rows, *passes):
    return sum(float(row["seconds"]) for row in rows if not passes or row["pass"] in passes)


PI_CONVOLUTIONS = ("forward", "backward_data", "backward_weights")


def chaos_faults():
    """Seconds until the next finished step, by kind of fault."""
    rows = rows_of(BENCH / "chaos/faults.csv")
    kinds = {**dict(sorted(by(rows, lambda row: row["fault"]).items())), "all": rows}
    cells = []
    for kind, of in kinds.items():
        seconds = sorted(float(row["seconds"]) for row in of if row["seconds"])
        cells.append([kind if kind == "all" else f"`{kind}`", len(of), fixed(statistics.median(seconds)), fixed(seconds[9 * len(seconds) // 10]),
                      fixed(seconds[-1])])
    return table(["<fault", "times", "median, s", "nine of ten within, s", "longest, s"], cells) + origin_words(BENCH / "chaos/faults.csv")


def chaos_runs(path):
    """What came out of each run with faults."""
    rows = [[row["seed"], row["faults"], row["steps"],
             fixed(float(row["seconds"]) / int(row["faults"]), 1) if int(row["faults"]) else "", percent(float(row["goodput"])),
             row["largest_difference"]] for row in rows_of(path)]
    return table(["seed", "faults", "steps", "seconds a fault", "goodput", "largest relative difference of a loss"], rows) + \
        origin_words(path)


def chaos_kills():
    """How often each process was killed, or all were stopped, at which moment, and how often something differed."""
    path = BENCH / "chaos/kills.csv"
    groups = by(rows_of(path), lambda row: (row["launcher"], row["target"], row["moment"]))
    rows = [[f"`{launcher}`", f"`{target}`", moment, len(of), sum(bool(row["differed"]) or row["saved"] == "no" for row in of)]
            for (launcher, target, moment), of in sorted(groups.items())]
    return table(["<launcher", "<who", "<when", "times", "differed"], [*rows, ["all", "", "", *(sum(row[i] for row in rows) for i in (3, 4))]]) + \
        origin_words(path)


def chaos_cables():
    """What came of each cable that was out."""
    path = BENCH / "chaos/cables.csv"
    rows = [[row["folders"], row["device"], row["out"] + (" s" if row["out"].isdigit() else ""), row["went_on"], row["after_s"], row["led_by"], row["repeated"],
             row["halves"], row["again_s"]] for row in rows_of(path)]
    return table(["<folders", "<cable of", "<out", "<went on", "after, s", "<then led by", "steps repeated", "<two halves", "all again, s"], rows) + \
        origin_words(path)


def chaos_soak():
    """What a run of hours holds, by the medians of the second quarter of its samples and how much those of the last are above them."""
    path = BENCH / "chaos/soak.csv"
    if not path.exists():
        return NOT_MEASURED

    def grown(row, *columns, unit=1):
        before, growth = max(((float(row[column]) / unit, float(row[column + "_growth"]) / unit) for column in columns if row[column]),
                             key=lambda pair: pair[1], default=(None, None))
        return "" if before is None else f"{before:.{1 if unit > 1 else 0}f} ({growth:+.{1 if unit > 1 else 0}f})"

    rows = []
    for row in rows_of(path):
        of_roles = lambda measure: grown(row, *(f"{role}_{measure}" for role in ("supervisor", "agent", "rank")))
        life = row["rank_life_rss_growth"]
        rows.append([row["run"], row["where"], row["load"], fixed(float(row["hours"])), row["steps"], row["faults"], row["false_alarms_per_hour"],
                     *(grown(row, f"{role}_rss", unit=MIB) for role in ("supervisor", "agent", "rank")), f"{float(life) / MIB:+.1f}" if life else "",
                     *(of_roles(measure) for measure in ("descriptors", "sockets", "threads")), grown(row, "memory_files"),
                     grown(row, "memory_bytes", unit=MIB), grown(row, "processes"), grown(row, "zombies")])
    return table(["<run", "<on", "load of a core", "hours", "steps", "faults", "false alarms an hour", "supervisor, MiB", "agent, MiB", "rank, MiB",
                  "rank, in one life", "descriptors", "sockets", "threads", "files in memory", "MiB in them", "processes", "zombies"],
                 rows) + origin_words(path)


def readiness():
    """What keeping the state of each step costs a step where no fault happens."""
    path = BENCH / "recovery/readiness.csv"
    rows = rows_of(path)
    cells = [[row["pair"], fixed(float(row["without_ms"]) / 1000), fixed(float(row["with_ms"]) / 1000), fixed(float(row["ratio"]))] for row in rows]
    cells.append(["median", "", "", fixed(statistics.median(float(row["ratio"]) for row in rows))])
    return table(["<pair", "a step without, s", "with, s", "with to without"], cells) + origin_words(path)


def pi_steps():
    """A step of each Raspberry Pi, as loops and memory would allow."""
    rows = []
    for board, of in by(pi_rows(), lambda row: row["board"]).items():
        flops = sum(int(row["flops"]) for row in of)
        convolutions = pi_seconds(of, *PI_CONVOLUTIONS)
        rows.append([board, *(fixed(pi_seconds(of, name)) for name in PI_CONVOLUTIONS), fixed(pi_seconds(of, "rows_forward", "rows_backward")),
                     fixed(pi_seconds(of, "update")), fixed(pi_seconds(of)), figures(flops / convolutions / 1e9)])
    return table(["<Raspberry Pi", "forward, s", "backward data, s", "weight gradients, s", "rows, s", "update, s", "step, s", "GFLOP/s of convolutions"],
                 rows) + origin_words(BENCH / "pi/step_times.csv")


def pi_layers():
    """The layers of one of them: seconds and, of convolutions, GFLOP/s."""
    rows = []
    for layer, of in by([row for row in pi_rows() if row["board"] == "3B" and row["layer"]], lambda row: row["layer"]).items():
        cells = []
        for name in PI_CONVOLUTIONS:
            found = [row for row in of if row["pass"] == name]
            cells.append("".join(f"{float(row['seconds']):.3f} ({int(row['flops']) / float(row['seconds']) / 1e9:.0f})" for row in found))
        rows.append([layer, of[0]["shape"], of[0]["kernel"], *cells, f"{pi_seconds(of, 'rows_forward'):.3f}", f"{pi_seconds(of, 'rows_backward'):.3f}"])
    return table(["layer", "<convolution", "<kernel", "forward, s (GFLOP/s)", "backward data", "weight gradient", "rows forward, s", "rows backward, s"], rows)


PI_ACTIVATIONS = ["linear", "ReLU", "leaky", "ReLU6", "ramp", "hard mish", "logistic", "tanh", "swish", "mish"]  # Kind of row_kernels.inl


def pi_loops(only):
    """Rows of the inner loops whose version and name `only` takes, each loop once."""
    kept = {}
    for row in rows_of(BENCH / "pi/inner_loops.csv"):
        if only(row["kernels"], row["loop"]):
            kept.setdefault((row["loop"], row["multiply_adds"], row["instructions"]), row)
    return list(kept.values())


def pi_loop_name(name):
    """`outer_terms<float, 8, 10, 1>` without the type, kinds of activations by name."""
    name = re.sub(r"\bkind (\d+)", lambda kind: PI_ACTIVATIONS[int(kind.group(1))], re.sub("^auto |float, |<float>", "", name))
    return f"`{name}`"


PI_LOOP_COLUMNS = {"multiply_adds": "multiply-adds", "instructions": "instructions", "stack": "on the stack", "cycles": "cycles, A53",
                   "of_peak": "of peak, A53", "busy": "vector unit busy, A53", "of_peak_a72": "of peak, A72", "of_peak_a76": "of peak, A76"}


def pi_loop_table(only, columns):
    return table(["<loop", *columns.values()], [[pi_loop_name(row["loop"]), *(row[key] for key in columns)] for row in pi_loops(only)]) + \
        origin_words(BENCH / "pi/inner_loops.csv")


def is_row(name):
    return "_at_once<" in name


def pi_sums():
    """The portable sums."""
    return pi_loop_table(lambda kernels, name: kernels == "generic" and not re.search("_row|_any|moments|argmax|depthwise", name), PI_LOOP_COLUMNS)


def pi_sums_in_order():
    return pi_loop_table(lambda kernels, name: kernels == "cortex_a53" and re.match(r"\w+_in_order(<\d|$)", name) and
                         not re.match("gradient|normalize", name), PI_LOOP_COLUMNS)


def pi_row_loops():
    return pi_loop_table(lambda kernels, name: kernels == "cortex_a53" and is_row(name), PI_LOOP_COLUMNS)


def pi_row_cycles():
    """What a Cortex-A53's vector unit does in rows, and the share of the peak if it did so without a pause."""
    return pi_loop_table(lambda kernels, name: kernels == "cortex_a53" and is_row(name),
                         {"multiply_adds": "multiply-adds", "memory": "loads and stores", "choices": "comparisons and choices",
                          "conversions": "conversions, double precision", "divisions": "divisions", "other": "other", "at_most": "of peak, at most"})


def pi_cache_misses():
    """Of a call of each pass, with blocks for this machine's caches and for those of a Cortex-A53."""
    path = BENCH / "pi/cache_misses.csv"
    rows = []
    for (layer, shape, passed, kernel), of in by(rows_of(path), lambda row: (row["layer"], row["shape"], row["pass"], row["kernel"])).items():
        counts = {row["blocks"]: (int(row["d1_misses"]), int(row["ll_misses"])) for row in of}
        (d1, ll), (d1_blocks, ll_blocks) = counts["generic"], counts["cortex-a53"]
        rows.append([layer, shape, passed.replace("_", " "), kernel, figures(d1 / 1e6), figures(d1_blocks / 1e6), figures(64e-6 * ll), figures(64e-6 * ll_blocks),
                     fixed(ll_blocks / ll)])
    return table(["layer", "<convolution", "<pass", "<kernel", "misses of the first level, millions", "A53's blocks", "from memory, MB", "A53's blocks", "times"],
                 rows) + origin_words(path)


def pi_plans(name):
    return [row for row in rows_of(BENCH / "pi/plans.csv") if row["table"] == name]


def pi_times_one(row):
    return figures(float(row["one_rank_s"]) / float(row["step_s"]))


def pi_clusters():
    """What the planner says of the example clusters."""
    return table(["<file", "ranks", "step, s", "times one", "<limited by", "<cut"],
                 [[f"`{row['cluster']}`", row["ranks"], row["step_s"], pi_times_one(row), row["limited_by"], row["cut"]] for row in pi_plans("clusters")]) + \
        origin_words(BENCH / "pi/plans.csv")


def pi_links():
    """The same on other links."""
    return table(["Mbit/s", "bytes per second", "step, s", "times one", "<limited by", "groups", "<cut"],
                 [[figures(8e-6 * float(row["interface_bytes_per_s"])), row["interface_bytes_per_s"], row["step_s"], pi_times_one(row), row["limited_by"],
                   row["groups"], row["cut"]] for row in pi_plans("links")])


def pi_batches():
    """The same for more images."""
    return table(["images", "one Pi 3, s", "six, s", "times one", "<limited by", "<cut"],
                 [[row["batch"], row["one_rank_s"], row["step_s"], pi_times_one(row), row["limited_by"], row["cut"]] for row in pi_plans("batches")])


def pi_grid():
    """What is chosen beside a grid of tiles through all layers."""
    return table(["<options", "step, s", "times one", "<limited by", "sent, MiB", "of which gradients and parameters"],
                 [[f"`{row['options']}`", row["step_s"], pi_times_one(row), row["limited_by"], row["sent_mib"], row["gradients_mib"]]
                  for row in pi_plans("grid")])


def pi_detector():
    """How long six devices take for 1,000 pictures and 50 epochs of YOLOv4-tiny, by the planner."""
    kinds = {"pi3x6": "Raspberry Pi 3", "pi4x6": "Raspberry Pi 4", "pi5x6": "Raspberry Pi 5", "pi5x6-1gb": "Raspberry Pi 5, 1 GB"}
    images = 1000 * 50
    return table(["<six of", "a step of 64 images, s", "1,000 pictures, 50 epochs", "one alone"],
                 [[kinds[row["cluster"]], row["step_s"],
                   *(f"{figures(images / int(row['batch']) * float(row[seconds]) / 3600)} h" for seconds in ("step_s", "one_rank_s"))]
                  for row in pi_plans("detector")]) + origin_words(BENCH / "pi/plans.csv")


TABLES = {
    "pi-detector": pi_detector,
    "chaos-faults": chaos_faults,
    "chaos-runs": lambda: chaos_runs(BENCH / "chaos/runs.csv"),
    "chaos-minute": lambda: chaos_runs(BENCH / "chaos/minute-runs.csv"),
    "chaos-many": lambda: chaos_runs(BENCH / "chaos/many-runs.csv"),
    "chaos-kills": chaos_kills,
    "chaos-cables": chaos_cables,
    "chaos-soak": chaos_soak,
    "readiness": readiness,
    "pi-steps": pi_steps,
    "pi-layers": pi_layers,
    "pi-sums": pi_sums,
    "pi-sums-in-order": pi_sums_in_order,
    "pi-rows": pi_row_loops,
    "pi-row-cycles": pi_row_cycles,
    "pi-cache-misses": pi_cache_misses,
    "pi-clusters": pi_clusters,
    "pi-links": pi_links,
    "pi-batches": pi_batches,
    "pi-grid": pi_grid,
    "results": results,
    "detection": lambda: detection("detection.csv"),
    "detection-yolox": lambda: detection("yolox.csv"),
    "fashion": fashion,
    "peers": lambda: peers("peers.csv", False),
    "peers-models": lambda: peers("models.csv", True),
    "peers-yolox": lambda: peers("yolox.csv", True),
    "peers-sid": lambda: peers("sid.csv", True),
    "peers-sid-early": lambda: peers("sid-early.csv", False),
    "peers-detectors": peers_detectors,
    "kernels": kernels,
    "kernel-errors": kernel_errors,
    "layers": layers,
    "layers-networks": layer_networks,
    "layers-slower": slow_layers,
    "speed": lambda: speed("speed.csv"),
    "speed-losses": lambda: losses("speed.csv"),
    "speed-fewer-devices": lambda: speed("speed_2.csv", "speed_4.csv", devices=True),
    "speed-9-gflops": lambda: speed("speed_9gflops.csv"),
    "speed-9-gflops-losses": lambda: losses("speed_9gflops.csv"),
    "speed-by-rate": lambda: speed_by_rate("speed_416.csv"),
    "detectors": detectors,
    "group-size-verdict": group_size_verdict,
    "group-size-100": lambda: group_size("100"),
    "group-size-20": lambda: group_size("20"),
    "group-size-5": lambda: group_size("5"),
    "group-size-origin": origin_of_group_size,
    "prediction": prediction,
    "prediction-pairs": prediction_pairs,
    "choice": choice,
    "device-choice": device_choice,
    "simulated-choice": simulated_by_spread,
    "simulated-choice-objectives": simulated_by_objective,
    "scale": scale,
    "search": search,
    "memory": memory,
    "monitor-cost": lambda: monitor("cost"),
    "monitor-truth": lambda: monitor("truth"),
    "pictures": pictures,
    "uneven": uneven,
    "park-lenet": lambda: park_devices("lenet5", "1"),
    "park-resnet": lambda: park_devices("fashion-resnet", "2"),
    "park-shared": park_shared,
    "park-depth": park_depth,
    "park-depth-published": park_depth_published,
    "park-epochs": park_epochs,
    "park-synchronisation": park_synchronisation,
    "fine-tuning": fine_tuning,
    "trunk-cache": trunk_cache,
    "balance": balance,
    "balance-classes": balance_classes,
    "balance-cbc": balance_cbc,
    "balance-measured": balance_measured,
    "profile": profile,
    "darknet-steps": darknet_steps,
    "accuracy-fashion": lambda: accuracy("fashion"),
    "accuracy-coloured": lambda: accuracy("coloured"),
    "accuracy-origin": origin_of_accuracy,
    "synchronisation": synchronisation,
}


def with_tables(text, path):
    def replacement(match):
        if match[2] not in TABLES:
            sys.exit(f"{path}: there is no table called {match[2]}: see bench/tables.py --list")
        return f"{match[1]}{TABLES[match[2]]()}{match[3]}"

    if text.count("<!-- table: ") != len(MARKER.findall(text)):
        sys.exit(f"{path}: a table has no <!-- end of table -->")
    return MARKER.sub(replacement, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a table is not up to date")
    parser.add_argument("--list", action="store_true", help="print the names of the tables")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(TABLES))
        return
    outdated = []
    for path in [ROOT / "README.md", *sorted(BENCH.rglob("*.md"))]:
        before = path.read_text(encoding="utf-8")
        after = with_tables(before, path.relative_to(ROOT))
        if after != before:
            outdated.append(str(path.relative_to(ROOT)))
            if not arguments.check:
                path.write_text(after, encoding="utf-8")
    if arguments.check and outdated:
        sys.exit("not up to date, run bench/tables.py: " + ", ".join(outdated))


if __name__ == "__main__":
    main()
