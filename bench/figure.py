"""What all figures of the benches have in common: colours, style, and that the same numbers give the same file."""

import argparse
import math
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.patches import Patch  # noqa: E402, F401

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442", "#999999"]
DARK = "#444444"
PALE = "#999999"

plt.rcParams.update({"font.size": 10, "axes.titlesize": 11, "axes.spines.top": False, "axes.spines.right": False,
                     "axes.grid": True, "axes.axisbelow": True, "grid.color": "#e5e5e5", "svg.hashsalt": "tessera"})


def subplots(rows=1, cols=1, size=(10, 7.2), **options):
    """A figure and an array of its axes."""
    return plt.subplots(rows, cols, figsize=size, squeeze=False, **options)


def legend_below(figure, handles, labels=None, columns=None):
    """Rows of entries at the lower edge; what is drawn above keeps clear of them."""
    labels = labels or [handle.get_label() for handle in handles]
    columns = columns or max(1, len(handles))
    rows = math.ceil(len(handles) / columns)
    figure.legend(handles, labels, loc="lower center", ncol=columns, frameon=False)
    figure.tight_layout(rect=(0, (0.14 + 0.22 * rows) / figure.get_figheight(), 1, 1), h_pad=2, w_pad=2)


def save(figure, path):
    """As .svg, .png or .pdf, without a date or random identifiers."""
    try:
        figure.savefig(path, dpi=110, facecolor="white", metadata={"Date": None} if path.endswith(".svg") else None)
    except OSError as error:
        sys.exit(f"{path}: {error.strerror}")


def draw_csv(draw, description):
    """The command line of a script that draws one CSV: FILE --out FIGURE. `draw` makes the figure of a path."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="CSV")
    parser.add_argument("--out", required=True, metavar="FIGURE", help="picture to write: .svg, .png or .pdf")
    arguments = parser.parse_args()
    save(draw(arguments.file), arguments.out)
