#!/usr/bin/python3
"""Draws what the benches of training steps measured (Debian: python3-matplotlib).

    bench/plot_steps.py KIND --out FIGURE FILE... [--caption TEXT]

KIND        FILE
groupings   CSV of bench/group_size/run.sh: what a step of each grouping of layers is spent with
prediction  CSV of bench/prediction/run.sh: predicted and measured time of each partition
choice      CSV of bench/choice/run.sh: what --partition auto chose beside the fastest that was measured
speed       one or more CSVs of bench/speed/run.sh: speed-up over one device
memory      CSV of bench/memory/run.sh: peak memory beside other programs
run         memory.json of a run folder: planned and measured memory of each rank, by what it is for
scale       CSV of bench/planner/scale.sh: predicted speed-up on many devices
"""

import argparse
import json
import math
import re
import statistics
import sys
import textwrap

import figure as look
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from results import MIB, baseline_of, baselines_of, by, kind_of, largest, open_text, predicted_speed_up, rows_of, speed_up, steps_of

BLUE, RED, GREEN = look.COLOURS[:3]
BAR = 0.4
KINDS_OF_MEMORY = ["weights", "gradients", "optimizer", "activations", "workspace", "messages", "pictures", "decoding", "data", "program"]
KIND_COLOURS = [*look.COLOURS, "#44aa99", "#882255"]


def setting_words(step, *columns):
    return ", ".join(f"batch {step.row[column]}" if column == "batch" else step.row[column] for column in columns)


def label_places(axes, labels):
    axes.set_xticks(range(len(labels)), labels)
    if max(map(len, labels)) > 12 or len(labels) > 10:
        axes.tick_params(axis="x", rotation=60)
        for label in axes.get_xticklabels():
            label.set(horizontalalignment="right", rotation_mode="anchor")
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")


def draw_pairs(axes, pairs, legend):
    """Two bars per place, as [(left, right), ...]."""
    for side, (colour, label) in enumerate(zip((look.PALE, BLUE), legend)):
        axes.bar([place + (side - 0.5) * BAR for place in range(len(pairs))], [pair[side] for pair in pairs],
                 BAR * 0.94, color=colour, label=label, zorder=2)


STEP_PARTS = {"computing": BLUE, "redundant computing": "#e69f00", "maps": GREEN, "statistics": "#cc79a7",
              "gradient reduction": RED, "idle": "#cccccc"}


def parts_of(step):
    """Seconds of STEP_PARTS. What is computed twice is not measured apart: its share is the predicted one."""
    computing, *others = (statistics.median(of_rounds) for of_rounds in zip(*step.parts))
    redundant = computing * float(step.row["redundant"])
    return [computing - redundant, redundant, *others]


def told(step, name):
    """What the settings of a row tell of NAME, as in "grid 2x2; tiled 8"."""
    return dict(setting.strip().partition(" ")[::2] for setting in step.row["settings"].split(";")).get(name, "")


def grouping_words(name):
    """With the commas that the CSV has no room for."""
    if not re.match(r"\d+(-\d+)?( \d| the rest|$)", name):
        return name
    layers, rest, _ = name.partition(" the rest alone")
    return ", ".join(layers.split()) + (", the rest alone" if rest else "")


def draw_step(axis, place, step, name):
    end = 0.0
    for seconds, colour in zip(parts_of(step), STEP_PARTS.values()):
        axis.barh(place, seconds, 0.72, end, color=colour, zorder=2)
        end += seconds
    axis.plot(step.predicted_s, place, marker="|", markersize=15, markeredgewidth=1.6, color="#000000", zorder=4)
    axis.annotate(f"{step.measured_s:.2f} s", (max(end, step.predicted_s), place), (6, 0), textcoords="offset points", va="center",
                  fontweight="bold" if name else "normal")


def groupings(path, caption=""):
    settings = by(steps_of(path), lambda step: step.setting)
    inches = [1.0 + 0.3 * len(steps) for steps in settings.values()]
    below = 0.75 + 0.16 * sum(len(textwrap.wrap(line, 150)) for line in caption.splitlines())
    figure, axes = look.subplots(len(settings), 1, (9.5, sum(inches) + below), gridspec_kw={"height_ratios": inches})
    for axis, steps in zip(axes[:, 0], settings.values()):
        chosen = sorted((step for step in steps if step.name != "auto"), key=lambda step: step.measured_s)
        automatic = [step for step in steps if step.name == "auto"]
        for place, step in enumerate(chosen):
            draw_step(axis, place, step, place == 0)
        for step in automatic:
            draw_step(axis, len(chosen) + 0.5, step, False)
            axis.axhline(len(chosen) - 0.25, color=look.PALE, linewidth=0.8, linestyle=(0, (4, 3)))
        axis.set_yticks([*range(len(chosen)), *(len(chosen) + 0.5 for _ in automatic)],
                        [*(grouping_words(step.name) for step in chosen), *("--partition auto" for _ in automatic)])
        step = steps[0]
        links = f", links of {step.row['rate_mbit']} Mbit/s" if step.row["rate_mbit"] else ""
        cut = f"layers 0 to {int(told(step, 'tiled')) - 1} in {told(step, 'grid')} tiles" if told(step, "tiled") else ""
        axis.set_title(f"{step.row['model']}, {step.row['size']}, batch {step.batch}, {step.devices} devices{links}; cut: {cut}", loc="left")
        axis.set(ylim=(len(chosen) + len(automatic), -0.6), xlim=(0, 1.12 * max(max(sum(parts_of(step)), step.predicted_s) for step in steps)))
        axis.tick_params(axis="y", length=0)
        axis.grid(visible=False, axis="y")
    axes[-1, 0].set(xlabel="seconds per step, mean device")
    handles = [Patch(color=colour, label=label) for label, colour in STEP_PARTS.items()]
    handles.append(Line2D([], [], color="#000000", marker="|", markersize=12, markeredgewidth=1.6, linestyle="none", label="predicted step"))
    figure.legend(handles=handles, loc="lower center", ncol=4, frameon=False, bbox_to_anchor=(0.5, (below - 0.62) / figure.get_figheight()))
    figure.text(0.02, 0.08 / figure.get_figheight(), "\n".join("\n".join(textwrap.wrap(line, 150)) for line in caption.splitlines()), va="bottom", fontsize=9)
    figure.tight_layout(rect=(0, below / figure.get_figheight(), 1, 1), h_pad=1.5)
    return figure


def prediction(path):
    steps = steps_of(path)
    models = sorted({step.row["model"] for step in steps})
    # By cluster, or where these are more than there are colours, by how many devices they have.
    by_cluster = len({step.row["cluster"] for step in steps}) <= 6

    def group_of(step):
        return step.row["cluster"] if by_cluster else f"{step.devices} devices"

    groups = sorted({group_of(step) for step in steps})
    figure, axes = look.subplots(1, 2, (11, 5.4))
    markers = "os^Dv"
    for axis, measured, predicted, unit in (
            (axes[0, 0], lambda step: 1e3 * step.measured_s, lambda step: 1e3 * step.predicted_s, "ms per step"),
            (axes[0, 1], lambda step: step.peak_bytes / MIB, lambda step: step.planned_bytes / MIB, "MiB, largest of all devices")):
        for step in steps:
            axis.plot(measured(step), predicted(step), color=look.COLOURS[groups.index(group_of(step)) % 6], alpha=0.75,
                      marker=markers[models.index(step.row["model"]) % 5], markersize=5, linestyle="none", zorder=3)
        ends = [min(min(measured(step), predicted(step)) for step in steps) / 1.2,
                max(max(measured(step), predicted(step)) for step in steps) * 1.2]
        axis.plot(ends, ends, color=look.DARK, linewidth=1, zorder=1)
        axis.fill_between(ends, [0.9 * end for end in ends], [1.1 * end for end in ends], color="#eeeeee", zorder=0)
        axis.set(xscale="log", yscale="log", xlim=ends, ylim=ends, xlabel=f"measured, {unit}", ylabel=f"predicted, {unit}")
        axis.set_aspect("equal")
    error = statistics.median(abs(step.predicted_s / step.measured_s - 1) for step in steps)
    axes[0, 0].set(title=f"Time: median error {100 * error:.1f} % of {len(steps)} partitions; grey: 10 %")
    axes[0, 1].set(title="Peak memory of a process: measured and planned")
    handles = [Line2D([], [], color=look.COLOURS[i % 6], marker="o", linestyle="none", label=group) for i, group in enumerate(groups)]
    handles += [Line2D([], [], color=look.DARK, marker=markers[i % 5], linestyle="none", label=model) for i, model in enumerate(models)]
    look.legend_below(figure, handles)
    return figure


def choice(path):
    settings = [steps for steps in by(steps_of(path), lambda step: step.setting).values() if any(step.name == "auto" for step in steps)]
    if not settings:
        sys.exit(f"{path}: no setting has a measurement of auto")
    figure, axes = look.subplots(1, 1, (9, 1.2 + 0.42 * len(settings)))
    axis = axes[0, 0]
    for place, steps in enumerate(settings):
        best = min(step.measured_s for step in steps)
        for step in steps:
            chosen = step.name == "auto"
            axis.plot(step.measured_s / best, place, marker="D" if chosen else "o", linestyle="none", zorder=3 if chosen else 2,
                      color=RED if chosen else look.PALE, markersize=7 if chosen else 5, alpha=1 if chosen else 0.7)
    axis.set_yticks(range(len(settings)), [setting_words(steps[0], "cluster", "model", "size", "batch") for steps in settings])
    axis.set(xscale="log", xlabel="step time, relative to the fastest measured", ylim=(len(settings) - 0.5, -0.5))
    most = max(axis.get_xlim()[1], 1.2)
    ticks = [tick for tick in (1, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50) if tick <= most]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    look.legend_below(figure, [Line2D([], [], color=RED, marker="D", linestyle="none", label="--partition auto"),
                               Line2D([], [], color=look.PALE, marker="o", linestyle="none", label="other partitions")])
    return figure


SPEED_LINES = {"auto": ("-", "o", BLUE), "layers": ("--", "s", GREEN), "one-group": (":", "^", RED), "auto-half": ("-.", "D", look.COLOURS[3])}
SPEED_NAMES = {"auto": "measured, --partition auto", "layers": "measured, a group for each layer", "one-group": "measured, one group for all layers",
               "auto-half": "measured, auto with 16-bit gradients"}


def draw_speed(axis, points, baselines):
    """The speed-ups of one partition on one, two, ... devices; of what --partition auto chose also what was predicted, and the bound of the work."""
    line, marker, colour = SPEED_LINES.get(points[0].name, ("-.", "x", look.PALE))
    points.sort(key=lambda step: step.devices)
    devices = [1, *(step.devices for step in points)]
    axis.plot(devices, [1, *(speed_up(step, baseline_of(step, baselines)) for step in points)], color=colour, linestyle=line, marker=marker,
              markersize=5, zorder=3)
    end = speed_up(points[-1], baseline_of(points[-1], baselines))
    axis.annotate(f"{end:.1f}", (devices[-1], end), (-4, -14), textcoords="offset points", color=colour, ha="center", fontsize=9)
    if points[0].name != "auto":
        return
    axis.plot(devices, [1, *(predicted_speed_up(step, baseline_of(step, baselines)) or math.nan for step in points)], color=look.DARK, linewidth=1,
              linestyle="--", zorder=2)
    axis.plot(devices, [1, *(step.get("work_bound") or math.nan for step in points)], color=look.PALE, linewidth=7, alpha=0.3, solid_capstyle="round", zorder=1)


def speed(*paths):
    steps = [step for path in paths for step in steps_of(path)]
    baselines = baselines_of(steps)
    several = [step for step in steps if step.devices > 1 and step.name != "each" and baseline_of(step, baselines)]
    rows = by(several, lambda step: (kind_of(step), *step.setting[4:6], float(step.row["rate_mbit"])))
    if not rows:
        sys.exit(f"{paths[0]}: there is no speed-up without both one device and several")
    batches = sorted({step.batch for step in several})
    figure, axes = look.subplots(len(rows), len(batches), (max(6, 1 + 2.6 * len(batches)), 0.9 + 2.9 * len(rows)), sharex=True, sharey=True)
    most = max(step.devices for step in several)
    for axis_row, ((kind, model, size, rate), row) in zip(axes, rows.items()):
        for axis, batch in zip(axis_row, batches):
            for points in by([step for step in row if step.batch == batch], lambda step: step.name).values():
                draw_speed(axis, points, baselines)
            axis.plot([1, most], [1, most], color=look.DARK, linewidth=1, linestyle=(0, (1, 3)), zorder=1)
            axis.set(title=f"batch {batch}", xticks=sorted({1, *(step.devices for step in several)}), yticks=range(1, most + 1))
        axis_row[0].set(ylabel=f"{kind}, {model},\n{size}, {rate:g} Mbit/s\nspeed-up over one device")
    for axis in axes[-1]:
        axis.set(xlabel="devices")
    handles = [Line2D([], [], color=colour, linestyle=line, marker=marker, markersize=5, label=SPEED_NAMES[name])
               for name, (line, marker, colour) in SPEED_LINES.items() if any(step.name == name for step in several)]
    handles += [Line2D([], [], color=look.DARK, linewidth=1, linestyle="--", label="predicted"),
                Line2D([], [], color=look.PALE, linewidth=7, alpha=0.3, label="bound of the work"),
                Line2D([], [], color=look.DARK, linewidth=1, linestyle=(0, (1, 3)), label="linear speed-up")]
    look.legend_below(figure, handles, columns=min(len(handles), 2 * len(batches), 4))
    return figure


def program_colour(name):
    return {"tessera": BLUE, "torch": RED}.get(name.partition("-")[0], look.PALE)


def memory(path):
    batches = {}
    for row in rows_of(path):
        batches.setdefault(f"{row['model']}, {row['size']}, batch {row['batch']}", []).append(row)
    if not batches:
        sys.exit(f"{path}: nothing has been measured yet")
    figure, axes = look.subplots(1, len(batches), (max(6.5, 4.4 * len(batches)), 5.2))
    for axis, (title, rows) in zip(axes[0], batches.items()):
        heights = [largest(row["peak_bytes"]) / MIB for row in rows]
        bars = axis.bar(range(len(rows)), heights, 0.7, zorder=2, color=[program_colour(row["name"]) for row in rows])
        axis.bar_label(bars, [f"{height:.0f}" for height in heights])
        axis.set(title=title, ylabel="peak resident MiB, largest of all devices")
        label_places(axis, [f"{row['name']}, {row['devices']}" for row in rows])
    figure.tight_layout()
    return figure


def run_memory(path):
    with open_text(path) as file:
        ranks = json.load(file)["ranks"]
    figure, axes = look.subplots(1, 1, (max(7.5, 1.5 + 1.1 * len(ranks)), 5))
    axis = axes[0, 0]
    for side, which in enumerate(("planned", "measured")):
        places = [place + (side - 0.5) * BAR for place in range(len(ranks))]
        bottoms = [0.0] * len(ranks)
        for kind, colour in zip(KINDS_OF_MEMORY, KIND_COLOURS):
            heights = [rank[which].get(kind, 0) / MIB for rank in ranks]
            axis.bar(places, heights, BAR * 0.92, bottoms, color=colour, alpha=0.55 if side == 0 else 1, zorder=2)
            bottoms = [bottom + height for bottom, height in zip(bottoms, heights)]
    for place, rank in enumerate(ranks):
        peak = rank["measured"]["peak_resident"] / MIB
        axis.plot([place - BAR, place + BAR], [peak, peak], color=look.DARK, linewidth=1.5, zorder=3)
    axis.set(title="Memory of each rank: planned (pale) and measured", ylabel="MiB")
    label_places(axis, [f"rank {rank['rank']}" for rank in ranks])
    handles = [Patch(color=colour, label=kind) for kind, colour in zip(KINDS_OF_MEMORY, KIND_COLOURS)]
    look.legend_below(figure, [*handles, Line2D([], [], color=look.DARK, label="peak of the whole process")], columns=4)
    return figure


def scale(path):
    sizes = {}
    for row in rows_of(path):
        sizes.setdefault(int(row["pixels"]), []).append({key: float(value) for key, value in row.items()})
    if not sizes:
        sys.exit(f"{path}: nothing has been planned yet")
    figure, axes = look.subplots(1, 2, (10, 4.8))
    for (pixels, rows), colour in zip(sorted(sizes.items()), look.COLOURS):
        devices = [row["devices"] for row in rows]
        label = f"{pixels} x {pixels} pixels"
        axes[0, 0].plot(devices, [rows[0]["step_s"] / row["step_s"] for row in rows], color=colour, marker="o", markersize=4, label=label)
        axes[0, 1].plot(devices, [row["planning_s"] for row in rows], color=colour, marker="o", markersize=4)
    most = max(row["devices"] for rows in sizes.values() for row in rows)
    axes[0, 0].plot([1, most], [1, most], color=look.DARK, linewidth=1, linestyle=(0, (1, 3)))
    axes[0, 0].set(title="Predicted speed-up over one device", xlabel="devices", ylabel="times as fast")
    axes[0, 1].set(title="Time that planning takes", xlabel="devices", ylabel="s")
    ticks = [4**power for power in range(int(math.log(most, 4) + 1e-9) + 1)]
    for axis in axes[0]:
        axis.set(xscale="log", yscale="log")
        axis.set_xticks(ticks, [str(tick) for tick in ticks])
        axis.minorticks_off()
    axes[0, 0].set_yticks(ticks, [str(tick) for tick in ticks])
    look.legend_below(figure, *axes[0, 0].get_legend_handles_labels())
    return figure


DRAWINGS = {"groupings": groupings, "prediction": prediction, "choice": choice, "speed": speed, "memory": memory, "run": run_memory,
            "scale": scale}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=DRAWINGS, metavar="KIND")
    parser.add_argument("--out", required=True, metavar="FIGURE", help="picture to write: .svg, .png or .pdf")
    parser.add_argument("files", metavar="FILE", nargs="+")
    parser.add_argument("--caption", metavar="TEXT", help="file of a text to put below the figure (groupings)")
    arguments = parser.parse_args()
    options = {}
    if arguments.caption:
        with open_text(arguments.caption) as file:
            options["caption"] = file.read().strip()
    if len(arguments.files) > 1 and arguments.kind != "speed":
        parser.error(f"{arguments.kind} is drawn from one file")
    look.save(DRAWINGS[arguments.kind](*arguments.files, **options), arguments.out)


if __name__ == "__main__":
    main()
