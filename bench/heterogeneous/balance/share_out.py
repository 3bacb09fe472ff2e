#!/usr/bin/python3
"""Shares out Fashion-MNIST to devices as IDX files, or as large bitmaps, in FOLDER/part-0, part-1, ...

    bench/heterogeneous/balance/share_out.py FOLDER --samples N,N,... [--bitmaps SIDE] [--data FOLDER]

Each part has as many training pictures as SAMPLES says, one after the other from the data set, and a few to test with. Bitmaps have
SIDE x SIDE pixels of 24 bits, so that they take a while on a link.
"""

import argparse
import gzip
import pathlib
import struct

SIDE = 28
TESTS = 10


def read_half(folder, half):
    with gzip.open(folder / f"{half}-images-idx3-ubyte.gz") as file:
        pictures = file.read()[16:]
    with gzip.open(folder / f"{half}-labels-idx1-ubyte.gz") as file:
        labels = file.read()[8:]
    return pictures, labels


def write_idx(folder, half, pictures, labels):
    (folder / f"{half}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, len(labels), SIDE, SIDE) + pictures)
    (folder / f"{half}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, len(labels)) + labels)


def bitmap(picture, side):
    """Each pixel as often as it fits, bottom row first."""
    rows = []
    for row in reversed(range(side)):
        line = picture[row * SIDE // side * SIDE:][:SIDE]
        pixels = b"".join(bytes([line[col * SIDE // side]] * 3) for col in range(side))
        rows.append(pixels + bytes(-len(pixels) % 4))
    body = b"".join(rows)
    return (b"BM" + struct.pack("<IHHI", 54 + len(body), 0, 0, 54)
            + struct.pack("<IiiHHIIiiII", 40, side, side, 1, 24, 0, len(body), 0, 0, 0, 0) + body)


def write_bitmaps(folder, half, pictures, labels, side):
    for i, label in enumerate(labels):
        place = folder / half / f"class-{label}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{i:05}.bmp").write_bytes(bitmap(pictures[i * SIDE * SIDE:(i + 1) * SIDE * SIDE], side))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--samples", required=True)
    parser.add_argument("--bitmaps", type=int, default=0)
    parser.add_argument("--data", type=pathlib.Path, default="/usr/share/datasets/fashion-mnist")
    given = parser.parse_args()
    halves = {half: read_half(given.data, half) for half in ("train", "t10k")}
    first = {"train": 0, "t10k": 0}
    for number, count in enumerate(map(int, given.samples.split(","))):
        folder = given.folder / f"part-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        for half, size in (("train", count), ("t10k", TESTS)):
            pictures, labels = halves[half]
            begin, end = first[half], first[half] + size
            first[half] = end
            part = pictures[begin * SIDE * SIDE:end * SIDE * SIDE], labels[begin:end]
            if given.bitmaps:
                write_bitmaps(folder, "train" if half == "train" else "test", *part, given.bitmaps)
            else:
                write_idx(folder, half, *part)


if __name__ == "__main__":
    main()
