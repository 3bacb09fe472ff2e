#!/usr/bin/python3
"""Draws what bench/peers/run.sh measured: speed and memory beside PyTorch (Debian: python3-matplotlib).

    bench/peers/plot_peers.py --out bench/peers/peers.svg bench/peers/peers.csv bench/peers/models.csv

Speed is the step time of the fastest PyTorch configuration divided by Tessera's, medians of the rounds; the line on a bar goes from
Tessera's slowest round to its fastest. Memory is Tessera's peak as a share of the least that a PyTorch configuration takes.
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import figure as look  # noqa: E402
from results import MIB, by, peers_of  # noqa: E402

BAR = 0.8  # of the height of a row, for all its bars
THREAD_COLOURS = [look.COLOURS[0], look.COLOURS[5], look.COLOURS[2], look.COLOURS[4]]


def words(setting):
    model, size, batch = setting
    return ", ".join([model, *([] if size == "own" else [size]), f"batch {batch}"])


def bars(axis, rows, thread_counts, value, text, spread=None):
    """A bar for each number of threads in each row, with a label at its end."""
    height = BAR / len(thread_counts)
    for place, found in enumerate(rows):
        for threads, summary in found.items():
            which = thread_counts.index(threads)
            y = place + (which - (len(thread_counts) - 1) / 2) * height
            axis.barh(y, value(summary), height * 0.92, color=THREAD_COLOURS[which % 4], zorder=2)
            end = value(summary)
            if spread:
                low, high = spread(summary)
                axis.plot([low, high], [y, y], color="#222222", linewidth=1, zorder=3)
                end = max(end, high)
            axis.annotate(text(summary), (end, y), (3, 0), textcoords="offset points", va="center", fontsize=8)
    axis.tick_params(axis="y", length=0)
    axis.grid(visible=False, axis="y")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="picture to write: .svg, .png or .pdf")
    parser.add_argument("measured", metavar="CSV", nargs="+")
    arguments = parser.parse_args()
    settings = [found for path in arguments.measured for found in peers_of(path)]
    if not settings:
        sys.exit(f"{arguments.measured[0]}: nothing to compare with PyTorch")
    rows = {key: {setting[3]: summary for setting, summary in group} for key, group in by(settings, lambda found: found[0][:3]).items()}
    thread_counts = sorted({setting[3] for setting, _ in settings})

    figure, ((speeds, memories),) = look.subplots(1, 2, (10.5, 1.3 + 0.2 * len(thread_counts) * len(rows)), sharey=True)
    bars(speeds, rows.values(), thread_counts, lambda found: found["times"], lambda found: f"{found['times']:.2f}",
         lambda found: (found["torch"][0] / found["tessera"][2], found["torch"][0] / found["tessera"][1]))
    speeds.axvline(1, color=look.DARK, linestyle="--", linewidth=1)
    speeds.set(title="Training step: times as fast as PyTorch (dashed: equal)", ylim=(len(rows) - 0.5, -0.5))
    speeds.set_yticks(range(len(rows)), [words(key) for key in rows])
    bars(memories, rows.values(), thread_counts, lambda found: 100 * found["peak"] / found["torch_peak"],
         lambda found: f"{found['peak'] / MIB:.0f} of {found['torch_peak'] / MIB:.0f} MiB")
    memories.set(title="Peak memory of the process, % of PyTorch's", xlim=(0, 100))
    handles = [look.Patch(color=THREAD_COLOURS[which % 4], label=f"{threads} thread{'' if threads == 1 else 's'}") for which, threads in enumerate(thread_counts)]
    look.legend_below(figure, handles)
    look.save(figure, arguments.out)


if __name__ == "__main__":
    main()
