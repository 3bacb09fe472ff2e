#!/usr/bin/env python3
"""Makes two data sets out of Fashion-MNIST, each of five classes: OUT/first has classes 0 to 4, OUT/second 5 to 9, as IDX files whose
labels count from 0, with the names of the classes.

  bench/fashion_halves.py OUT [--pictures N] [--images FOLDER]
"""

import argparse
import gzip
import pathlib

import numpy

NAMES = ["T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"]
CLASSES = len(NAMES) // 2
PIXELS, LABELS = 0x0803, 0x0801  # what IDX files of bytes begin with: three dimensions, and one
SIDE = 28


def read_idx(path, header):
    return numpy.frombuffer(gzip.open(path).read(), dtype=numpy.uint8, offset=header)


def write_idx(path, magic, values):
    path.write_bytes(numpy.array([magic, *values.shape], dtype=">u4").tobytes() + values.tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--pictures", type=int, default=30000, help="to learn from, at most")
    parser.add_argument("--images", type=pathlib.Path, default="/usr/share/datasets/fashion-mnist")
    options = parser.parse_args()
    for number, half in enumerate(["first", "second"]):
        folder = options.out / half
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "labels.txt").write_text("\n".join(NAMES[CLASSES * number : CLASSES * (number + 1)]) + "\n", encoding="utf-8")
        for part in ["train", "t10k"]:
            pixels = read_idx(options.images / f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, SIDE, SIDE)
            labels = read_idx(options.images / f"{part}-labels-idx1-ubyte.gz", 8)
            chosen = numpy.flatnonzero(labels // CLASSES == number)[: options.pictures if part == "train" else None]
            write_idx(folder / f"{part}-images-idx3-ubyte", PIXELS, pixels[chosen])
            write_idx(folder / f"{part}-labels-idx1-ubyte", LABELS, labels[chosen] - numpy.uint8(CLASSES * number))


if __name__ == "__main__":
    main()
