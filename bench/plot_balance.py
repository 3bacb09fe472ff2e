#!/usr/bin/python3
"""Draws what moving data between devices gains, from the CSV of bench/heterogeneous/balance/run.sh (Debian: python3-matplotlib).

    bench/plot_balance.py --out FIGURE FILE
"""

import statistics

import figure as look
from matplotlib.lines import Line2D

from results import by, rows_of

TITLES = {"data": "unlike amounts of data", "speeds": "unlike speeds", "links": "unlike data and links", "all": "unlike data, speeds and links"}


def mean_of(rows, value):
    return statistics.mean(value(row) for row in rows)


def times(row, column):
    return float(row["unmoved_s"]) / float(row[column])


def draw_kind(axis, rows, sizes):
    for place, size in enumerate(sizes):
        of_size = by([row for row in rows if int(row["devices"]) == size], lambda row: float(row["imbalance"]))
        imbalances = sorted(of_size)
        for column, style in (("exact_s", "-"), ("greedy_s", ":")):
            axis.plot(imbalances, [mean_of(of_size[value], lambda row: times(row, column)) for value in imbalances], style,
                      color=look.COLOURS[place], marker="o" if style == "-" else None, markersize=4)
    axis.set(xscale="log", ylim=(0, None), xlabel="largest over smallest", ylabel="times as fast as without moving")
    ticks = sorted({float(row["imbalance"]) for row in rows})
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()


def draw_solving(axis, rows):
    for column, style, name in (("exact_solve_s", "-", "exact"), ("greedy_solve_s", ":", "greedy")):
        of_size = by([row for row in rows if row[column]], lambda row: int(row["devices"]))
        sizes = sorted(of_size)
        axis.plot(sizes, [1e3 * max(float(row[column]) for row in of_size[size]) for size in sizes], style, color=look.DARK, marker="o", markersize=4, label=name)
    axis.set(yscale="log", xlabel="devices", ylabel="processor time, ms, at most", title="how long it takes to choose")
    axis.legend(frameon=False)


def draw_gap(axis, rows):
    for column, style, name in (("exact_s", "-", "exact"), ("greedy_s", ":", "greedy")):
        of_size = by([row for row in rows if row[column]], lambda row: int(row["devices"]))
        sizes = sorted(of_size)
        gaps = [100 * max(1 - float(row["bound_s"]) / float(row[column]) for row in of_size[size]) for size in sizes]
        axis.plot(sizes, gaps, style, color=look.DARK, marker="o", markersize=4, label=name)
    axis.set(xlabel="devices", ylabel="% above the lower bound, at most", title="how far from the best", ylim=(0, None))
    axis.legend(frameon=False)


def draw(path):
    rows = [row for row in rows_of(path) if row["kind"] in TITLES]
    kinds = [kind for kind in TITLES if any(row["kind"] == kind for row in rows)]
    sizes = sorted({int(row["devices"]) for row in rows})
    figure, axes = look.subplots(2, 3, (11, 7))
    places = [axes[0, 0], axes[0, 1], axes[0, 2], axes[1, 0]]
    for kind, axis in zip(kinds, places):
        draw_kind(axis, [row for row in rows if row["kind"] == kind], sizes)
        axis.set(title=TITLES[kind])
    for axis in places[len(kinds):]:
        axis.set_visible(False)
    draw_gap(axes[1, 1], rows)
    draw_solving(axes[1, 2], rows)
    handles = [Line2D([], [], color=look.COLOURS[place], marker="o", markersize=4, label=f"{size} devices") for place, size in enumerate(sizes)]
    handles += [Line2D([], [], color=look.DARK, linestyle=style, label=name) for style, name in (("-", "exact"), (":", "greedy"))]
    look.legend_below(figure, handles)
    return figure


if __name__ == "__main__":
    look.draw_csv(draw, __doc__)
