#!/usr/bin/env python3
"""Makes a data set like CIFAR-10 out of Fashion-MNIST: 32x32 pixels in colour, in CIFAR-10's binary files.

Each picture is put at a random place before a background of its own: two colours that change into each
other, with noise on them. Its own colour is drawn too, so that only shapes tell the classes apart.

  bench/coloured_fashion.py OUT [--pictures N] [--tests N] [--images FOLDER]
"""

import argparse
import gzip
import pathlib

import numpy

SIDE = 32
FASHION_SIDE = 28
FILES = 5  # of CIFAR-10's training pictures


def read_idx(path, header):
    return numpy.frombuffer(gzip.open(path).read(), dtype=numpy.uint8, offset=header)


def read_fashion(folder, part):
    pixels = read_idx(folder / f"{part}-images-idx3-ubyte.gz", 16)
    labels = read_idx(folder / f"{part}-labels-idx1-ubyte.gz", 8)
    return pixels.reshape(-1, FASHION_SIDE, FASHION_SIDE), labels


def colour(picture, random):
    """(28, 28) bytes to (3, 32, 32) bytes."""
    slope = random.uniform(-1, 1, size=2)
    rows, cols = numpy.mgrid[0:SIDE, 0:SIDE] / (SIDE - 1.0)
    blend = numpy.clip(0.5 + slope[0] * (rows - 0.5) + slope[1] * (cols - 0.5), 0, 1)
    first, second, own = random.uniform(0, 1, size=(3, 3, 1, 1))
    scene = first * blend + second * (1 - blend) + random.normal(0, 0.08, size=(3, SIDE, SIDE))
    mask = numpy.zeros((SIDE, SIDE))
    top, left = random.integers(0, SIDE - FASHION_SIDE + 1, size=2)
    mask[top : top + FASHION_SIDE, left : left + FASHION_SIDE] = picture / 255.0
    scene = scene * (1 - mask) + (0.3 + 0.7 * own) * mask
    return numpy.clip(scene * 255, 0, 255).astype(numpy.uint8)


def write_batch(path, pictures, labels, random):
    with open(path, "wb") as file:
        for picture, label in zip(pictures, labels):
            file.write(bytes([label]))
            file.write(colour(picture, random).tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--pictures", type=int, default=20000, help="to learn from")
    parser.add_argument("--tests", type=int, default=10000)
    parser.add_argument("--images", type=pathlib.Path, default="/usr/share/datasets/fashion-mnist")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    random = numpy.random.default_rng(7)
    pictures, labels = read_fashion(options.images, "train")
    count = min(options.pictures, len(pictures))
    for number in range(FILES):
        part = slice(count * number // FILES, count * (number + 1) // FILES)
        write_batch(options.out / f"data_batch_{number + 1}.bin", pictures[part], labels[part], random)
    pictures, labels = read_fashion(options.images, "t10k")
    write_batch(options.out / "test_batch.bin", pictures[: options.tests], labels[: options.tests], random)


if __name__ == "__main__":
    main()
