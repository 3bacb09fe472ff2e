#!/usr/bin/python3
"""Draws loss and mean average precision of the training of a detector (Debian: python3-matplotlib).

    bench/detection/plot.py --out bench/detection/detection.svg RUN...

A RUN is a folder called RANKS-SEED, with the metrics.jsonl that `tessera train` writes. One rank is a broad pale line, more ranks a
thin dark one upon it.
"""

import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import figure as look  # noqa: E402

WINDOW = 100  # steps whose mean loss is a point
GOAL = 80  # mAP, %


def read(folder):
    """Steps and mean losses of windows; steps and mAP in % of tests."""
    path = pathlib.Path(folder) / "metrics.jsonl"
    try:
        entries = [json.loads(line) for line in path.read_text().splitlines()]
    except OSError as error:
        sys.exit(f"{path}: {error.strerror}")
    steps = {entry["step"]: entry["loss"] for entry in entries if entry.get("loss") is not None}
    losses = [(begin + WINDOW / 2, sum(steps[step] for step in range(begin, begin + WINDOW)) / WINDOW)
              for begin in range(1, max(steps, default=0) - WINDOW + 2, WINDOW)
              if all(step in steps for step in range(begin, begin + WINDOW))]
    tests = [(entry["step"], 100 * entry["map50"]) for entry in entries if entry.get("map50") is not None]
    return losses, tests


def draw(folders):
    figure, axes = look.subplots(1, 2, size=(10, 4.2))
    loss, precision = axes[0]
    handles = []
    for index, folder in enumerate(folders):
        ranks = int(pathlib.Path(folder).name.partition("-")[0])
        style = ({"linewidth": 4.5, "alpha": 0.35, "zorder": 2} if ranks == 1 else {"linewidth": 1.2, "zorder": 3})
        losses, tests = read(folder)
        line, = loss.plot(*zip(*losses), color=look.COLOURS[index], label=f"{ranks} rank{'s' if ranks > 1 else ''}", **style)
        precision.plot(*zip(*tests), color=look.COLOURS[index], marker="o", markersize=3, **style)
        handles.append(line)
    loss.set(title=f"Loss in training, means of {WINDOW} steps", xlabel="step", yscale="log")
    precision.axhline(GOAL, color=look.PALE, linewidth=1, linestyle="--")
    precision.set(title="mAP@.5 on the pictures for testing, %", xlabel="step", ylim=(0, 100))
    look.legend_below(figure, handles)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folder RANKS-SEED of a run")
    parser.add_argument("--out", required=True, metavar="FIGURE", help="picture to write: .svg, .png or .pdf")
    arguments = parser.parse_args()
    look.save(draw(arguments.runs), arguments.out)


if __name__ == "__main__":
    main()
