#!/usr/bin/python3
"""Draws how long training takes on more and more devices, beside Park, Lee and Kim (Debian: python3-matplotlib).

    bench/heterogeneous/park_figure.py CSV --out FIGURE
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import figure as look  # noqa: E402
from results import by, rows_of  # noqa: E402

LINES = {"auto": "--"}  # all others: solid


def curves_of(rows):
    """{way: [rows by devices, the run on one device first]}, auto last."""
    alone = [row for row in rows if row["way"] == "alone"]
    ways = by([row for row in rows if row["way"] != "alone"], lambda row: row["way"])
    return {way: alone + sorted(ways[way], key=lambda row: int(row["devices"])) for way in sorted(ways, key=lambda way: way == "auto")}


def count_devices(axis, rows):
    axis.set_xticks(sorted({int(row["devices"]) for row in rows}))
    axis.set(xlabel="devices")


def draw_times(axis, rows):
    """Elapsed time of the same number of steps, as multiples of that on one device."""
    published = by((row for row in rows_of(HERE / "park_published.csv") if row["table"] == "devices"), lambda row: row["setting"])
    for setting, of in published.items():
        axis.plot([int(row["devices"]) for row in of], [float(row["elapsed_s"]) / float(of[0]["elapsed_s"]) for row in of], color=look.PALE,
                  linestyle="-" if setting == "1" else "--", marker=".", label=f"published, setting {setting}")
    for (model, of), colour in zip(by(rows, lambda row: row["model"]).items(), look.COLOURS):
        for way, curve in curves_of(of).items():
            axis.plot([int(row["devices"]) for row in curve], [float(row["elapsed_s"]) / float(curve[0]["elapsed_s"]) for row in curve], color=colour,
                      linestyle=LINES.get(way, "-"), marker="o", markersize=4, label=f"{model}, {way}")
    count_devices(axis, rows)
    axis.set(title="The same batch on each device", ylabel="time, relative to one device", ylim=(0, None))
    axis.legend(frameon=False, fontsize=8)


def draw_steps(axis, rows):
    """Steps of the same batch shared out, and what was predicted of them."""
    for (way, curve), colour in zip(curves_of(rows).items(), look.COLOURS[2:]):
        devices = [int(row["devices"]) for row in curve]
        axis.plot(devices, [1e3 * float(row["step_s"]) for row in curve], color=colour, marker="o", markersize=4, label=f"{way}, measured")
        predicted = [row for row in curve if row["predicted_s"]]
        axis.plot([int(row["devices"]) for row in predicted], [1e3 * float(row["predicted_s"]) for row in predicted], color=colour, linestyle="--",
                  linewidth=1, label=f"{way}, predicted")
    star = [row for row in rows if row["star_s"] and row["way"] != "auto"]
    axis.plot([int(row["devices"]) for row in star], [1e3 * float(row["star_s"]) for row in star], color=look.DARK, linestyle=":", marker=".",
              label="reducing gradients by a star, predicted")
    count_devices(axis, rows)
    axis.set(title="LeNet-5, the same batch shared out", ylabel="step, ms", ylim=(0, None))
    axis.legend(frameon=False, fontsize=8)


def draw(path):
    rows = rows_of(path)
    parts = [(draw_times, [row for row in rows if row["part"] == "devices"]), (draw_steps, [row for row in rows if row["part"] == "shared"])]
    parts = [(function, of) for function, of in parts if of]
    if not parts:
        sys.exit(f"{path}: no run on several devices has been measured yet")
    drawing, axes = look.subplots(1, len(parts), (5.5 * len(parts), 4.5))
    for (function, of), axis in zip(parts, axes[0]):
        function(axis, of)
    drawing.tight_layout()
    return drawing


if __name__ == "__main__":
    look.draw_csv(draw, __doc__)
