#!/usr/bin/python3
"""Draws what bench/peers/run.sh measured: speed and memory of each peer (Debian: python3-matplotlib).

    bench/peers/plot_peers.py --out bench/peers/peers.svg runs/peers.csv

Speed is the time of the fastest PyTorch by the peer's own, medians of the rounds; a line on each bar goes from the slowest round
to the fastest. Of PyTorch only the fastest configuration of each setting is drawn, and of its memory that configuration's.
"""

import argparse
import csv
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import figure as look  # noqa: E402

NAMES = {"tessera": "Tessera", "torch": "PyTorch, fastest of four", "darknet": "Darknet (Debian's, one thread)"}
COLOURS = {"tessera": look.COLOURS[0], "torch": look.COLOURS[1], "darknet": look.PALE}
BAR = 0.8  # of the room of a setting, for all its bars


def read(path):
    """{(model, size, batch, threads): {peer: (seconds of the rounds, peak bytes)}}, in the order of the file."""
    settings = {}
    try:
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                setting = (pathlib.Path(row["model"]).stem, row["size"], int(row["batch"]), int(row["threads"]))
                seconds, peaks = settings.setdefault(setting, {}).setdefault(row["peer"], ([], []))
                seconds.append(float(row["step_s"]))
                peaks.append(float(row["peak_bytes"]))
    except OSError as error:
        sys.exit(f"{path}: {error.strerror}")
    return settings


def fastest_torch(peers):
    of_torch = [peer for peer in peers if peer.startswith("torch")]
    return min(of_torch, key=lambda peer: statistics.median(peers[peer][0]), default=None)


def chosen(settings):
    """Those of the settings that have PyTorch to compare with: [(setting, {"tessera", "torch", "darknet": measurements})]."""
    found = []
    for setting, peers in settings.items():
        best = fastest_torch(peers)
        if best is not None:
            kept = {"torch": peers[best]}
            kept.update((peer, peers[peer]) for peer in ("tessera", "darknet") if peer in peers)
            found.append((setting, kept))
    return found


def label(setting):
    model, size, batch, threads = setting
    lines = [model] if size == "own" else [model, size]
    return "\n".join([*lines, f"batch {batch}", f"{threads} thread{'' if threads == 1 else 's'}"])


def draw_bars(axes, settings, kinds, bars_of):
    """bars_of(measurements, torch's): height, and how far the line on the bar goes down and up."""
    width = BAR / len(kinds)
    for which, kind in enumerate(kinds):
        places, bars = [], []
        for place, (_, peers) in enumerate(settings):
            if kind in peers:
                places.append(place + (which - (len(kinds) - 1) / 2) * width)
                bars.append(bars_of(peers[kind], peers["torch"]))
        heights, down, up = zip(*bars)
        axes.bar(places, heights, width * 0.94, color=COLOURS[kind], label=NAMES[kind], zorder=2)
        if any(down) or any(up):
            axes.errorbar(places, heights, yerr=[down, up], fmt="none", ecolor="#222222", elinewidth=1, zorder=3)
    axes.set_xticks(range(len(settings)), [label(setting) for setting, _ in settings])
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")


def speed(measurements, torch):
    seconds, reference = measurements[0], statistics.median(torch[0])
    height = reference / statistics.median(seconds)
    return height, height - reference / max(seconds), reference / min(seconds) - height


def memory(measurements, _):
    return max(measurements[1]) / 2**20, 0, 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="picture to write: .svg, .png or .pdf")
    parser.add_argument("measured", metavar="CSV")
    arguments = parser.parse_args()
    settings = chosen(read(arguments.measured))
    if not settings:
        sys.exit(f"{arguments.measured}: nothing to compare with PyTorch")
    kinds = [kind for kind in NAMES if any(kind in peers for _, peers in settings)]

    figure, ((speeds,), (memories,)) = look.subplots(2, 1, (max(6.5, 1.2 + 1.15 * len(settings)), 7.2))
    draw_bars(speeds, settings, kinds, speed)
    speeds.axhline(1, color=look.DARK, linestyle="--", linewidth=1)
    speeds.set(title="Speed of a training step by the fastest PyTorch's", ylabel="times as fast")
    draw_bars(memories, settings, kinds, memory)
    memories.set(title="Peak resident memory", ylabel="MiB")
    handles, labels = speeds.get_legend_handles_labels()
    look.legend_below(figure, handles, labels)
    look.save(figure, arguments.out)


if __name__ == "__main__":
    main()
