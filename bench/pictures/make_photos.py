#!/usr/bin/env python3
"""make_photos.py FOLDER COUNT [MEGAPIXELS]: a data set of two classes of that many JPEG files to train with, as cameras make them, 4:3, with the detail and
noise of photos."""

import pathlib
import sys

import numpy
from PIL import Image


def photo(number, rows, cols):
    random = numpy.random.default_rng(number)
    picture = numpy.zeros((rows, cols, 3), dtype=numpy.float32)
    for scale, strength in ((8, 60), (64, 30), (512, 15)):  # cells across, and how much their colours differ
        coarse = random.normal(0, strength, (scale * 3 // 4, scale, 3)) + 128 / 3
        channels = [Image.fromarray(coarse[:, :, channel].astype(numpy.float32)).resize((cols, rows), Image.BICUBIC) for channel in range(3)]
        picture += numpy.stack([numpy.asarray(channel) for channel in channels], axis=2)
    picture[:, :, number % 2] += 40  # its class
    picture += random.normal(0, 4, (rows, cols, 1)).astype(numpy.float32)
    return Image.fromarray(numpy.clip(picture, 0, 255).astype(numpy.uint8))


def main():
    folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    pixels = float(sys.argv[3]) * 1e6 if len(sys.argv) > 3 else 12e6
    rows = round((pixels * 3 / 4) ** 0.5)
    for number in range(count + 2):  # the last two are to test with, so that all others are to train with
        path = folder / ("train" if number < count else "test") / ("warm" if number % 2 == 0 else "green") / f"{number:04d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        photo(number, rows, round(pixels / rows)).save(path, quality=88)


if __name__ == "__main__":
    main()
