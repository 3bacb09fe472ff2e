#!/usr/bin/python3
"""Draws what two devices of unequal speed reach together, as a share of the sum of their speeds (Debian: python3-matplotlib).

    bench/heterogeneous/uneven_figure.py CSV --out FIGURE
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import figure as look  # noqa: E402
from results import by, uneven_of  # noqa: E402


def draw(path):
    pairs = uneven_of(path)
    if not pairs:
        sys.exit(f"{path}: no pair of devices has been measured yet")
    drawing, axes = look.subplots(1, 1, (6.5, 4.6))
    axis = axes[0, 0]
    ratios = list(dict.fromkeys(pair["ratio"] for pair in pairs))
    for (workload, of), colour in zip(by(pairs, lambda pair: f"{pair['size']}, batch {pair['batch']}").items(), look.COLOURS):
        places = [ratios.index(pair["ratio"]) for pair in of]
        axis.plot(places, [100 * pair["share"] for pair in of], color=colour, marker="o", label=f"{workload}, measured")
        axis.plot(places, [100 * pair["predicted_share"] for pair in of], color=colour, linestyle="--", linewidth=1, label=f"{workload}, predicted")
    places = range(len(ratios))
    alone = [100 * ratio / (ratio + 1) for ratio in (float(text.partition(":")[0]) for text in ratios)]
    axis.plot(places, alone, color=look.PALE, linestyle=":", label="the faster one alone")
    axis.axhline(90, color=look.DARK, linewidth=1, linestyle=(0, (1, 3)))
    axis.set_xticks(places, ratios)
    most = max(100 * max(pair["share"], pair["predicted_share"]) for pair in pairs)
    axis.set(xlabel="ratio of the speeds", ylabel="% of the sum of the speeds", ylim=(45, max(105, most + 3)))
    look.legend_below(drawing, *axis.get_legend_handles_labels(), columns=2)
    return drawing


if __name__ == "__main__":
    look.draw_csv(draw, __doc__)
