#!/usr/bin/python3
"""Draws how runs with different numbers of ranks train the same model (Debian: python3-matplotlib).

    bench/plot_training.py --out bench/fashion_loss.svg RUN...

A RUN is a folder called RANKS-SEED, as runs/fashion/4-1 is, with the metrics.jsonl that `tessera train` writes.
Runs of one seed have one colour; one rank is a broad pale line, more ranks a thin dark one upon it.
"""

import argparse
import json
import math
import pathlib
import sys

import figure as look
from matplotlib.lines import Line2D

FIRST_STEPS = 50
BOUND = 1e-3  # what the losses of the first steps may differ by
WINDOW = 100
GOAL = 92  # test accuracy, %


class Run:
    """Losses by step (from 1), and (epoch, accuracy in %) by evaluation."""

    def __init__(self, folder):
        ranks, _, seed = pathlib.Path(folder).name.partition("-")
        if not (ranks.isdigit() and seed.isdigit()):
            sys.exit(f"{folder}: the folder of a run must be called RANKS-SEED, as 4-1")
        self.ranks, self.seed = int(ranks), int(seed)
        self.losses = {}
        self.evaluations = {}
        try:
            lines = (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines()
        except OSError as error:
            sys.exit(f"{folder}: {error.strerror}: metrics.jsonl")
        for entry in map(json.loads, lines):
            if entry.get("loss") is not None:
                self.losses[entry["step"]] = entry["loss"]
            if entry.get("accuracy") is not None:
                self.evaluations[entry["epoch"]] = 100 * entry["accuracy"]

    def means(self):
        """Middles and means of whole windows of steps."""
        middles, means = [], []
        for begin in range(1, len(self.losses) - WINDOW + 2, WINDOW):
            window = [self.losses.get(step, math.nan) for step in range(begin, begin + WINDOW)]
            middles.append(begin + (WINDOW - 1) / 2)
            means.append(sum(window) / WINDOW)
        return middles, means


def line_style(run, colours):
    if run.ranks == 1:
        return {"color": colours[run.seed], "linewidth": 4.5, "alpha": 0.35, "zorder": 2}
    return {"color": colours[run.seed], "linewidth": 1.1, "zorder": 3}


def draw_first_losses(axes, runs, colours):
    for run in runs:
        steps = [step for step in range(1, FIRST_STEPS + 1) if step in run.losses]
        axes.plot(steps, [run.losses[step] for step in steps], **line_style(run, colours))
    axes.set(title=f"Loss of the first {FIRST_STEPS} steps", xlabel="step", ylabel="cross-entropy")
    axes.set_xlim(0, FIRST_STEPS + 1)


def draw_differences(axes, runs, colours):
    """|loss on several ranks - loss on one rank|, logarithmic; a difference of 0 lies on the lower edge."""
    singles = {run.seed: run for run in runs if run.ranks == 1}
    points = []
    for run in runs:
        if run.ranks == 1 or run.seed not in singles:
            continue
        single = singles[run.seed].losses
        steps = [step for step in range(1, FIRST_STEPS + 1) if step in run.losses and step in single]
        points.append((run, steps, [abs(run.losses[step] - single[step]) for step in steps]))
    floor = min((d for _, _, differences in points for d in differences if d > 0), default=1e-8)
    floor = 10.0 ** math.floor(math.log10(floor))
    for run, steps, differences in points:
        axes.plot(steps, [max(d, floor) for d in differences], color=colours[run.seed], linewidth=1.1,
                  marker="o", markersize=3, clip_on=False)
    axes.axhline(BOUND, color=look.DARK, linestyle="--", linewidth=1)
    axes.annotate(f"bound {BOUND:g}", (FIRST_STEPS, BOUND), xytext=(0, 3), textcoords="offset points",
                  horizontalalignment="right", verticalalignment="bottom", color=look.DARK)
    axes.set_yscale("log")
    axes.set_ylim(floor, max([BOUND] + [d for _, _, differences in points for d in differences]) * 10)
    axes.set(title="Difference between several ranks and one, same seed", xlabel="step", ylabel="|difference of the loss|")
    axes.set_xlim(0, FIRST_STEPS + 1)


def draw_means(axes, runs, colours):
    for run in runs:
        axes.plot(*run.means(), **line_style(run, colours))
    axes.set_yscale("log")
    ticks = [0.05, 0.1, 0.2, 0.3, 0.5, 1, 2]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.autoscale(axis="y")
    axes.set(title=f"Loss of the whole run, means of {WINDOW} steps", xlabel="step", ylabel="cross-entropy")
    axes.set_xlim(left=0)


def draw_accuracies(axes, runs, colours):
    for run in runs:
        axes.plot(list(run.evaluations), list(run.evaluations.values()), **line_style(run, colours))
    axes.axhline(GOAL, color=look.DARK, linestyle="--", linewidth=1)
    axes.annotate(f"goal: {GOAL} %", (0.01, GOAL), xycoords=("axes fraction", "data"), xytext=(0, 3),
                  textcoords="offset points", verticalalignment="bottom", color=look.DARK)
    axes.set(title="Test accuracy", xlabel="epoch", ylabel="accuracy, %")
    axes.set_xlim(left=0)


def legend_entries(runs, colours):
    entries = [Line2D([], [], color=look.DARK, label="1 rank" if ranks == 1 else f"{ranks} ranks",
                      **({"linewidth": 4.5, "alpha": 0.35} if ranks == 1 else {"linewidth": 1.1}))
               for ranks in sorted({run.ranks for run in runs})]
    return entries + [Line2D([], [], color=colour, linewidth=3, label=f"seed {seed}")
                      for seed, colour in colours.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="picture to write: .svg, .png or .pdf")
    parser.add_argument("runs", nargs="+", metavar="RUN")
    arguments = parser.parse_args()
    runs = [Run(folder) for folder in arguments.runs]
    seeds = sorted({run.seed for run in runs})
    colours = {seed: look.COLOURS[i % len(look.COLOURS)] for i, seed in enumerate(seeds)}

    figure, axes = look.subplots(2, 2)
    draw_first_losses(axes[0, 0], runs, colours)
    draw_differences(axes[0, 1], runs, colours)
    draw_means(axes[1, 0], runs, colours)
    draw_accuracies(axes[1, 1], runs, colours)
    look.legend_below(figure, legend_entries(runs, colours))
    look.save(figure, arguments.out)


if __name__ == "__main__":
    main()
