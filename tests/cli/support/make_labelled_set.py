#!/usr/bin/env python3
"""Makes a small data set as a labelling program exports it: PNGs with red squares and blue discs, and YOLO's label texts.

  make_labelled_set.py cvat|roboflow FOLDER [PICTURES [SIZE [SEED]]]     20 pictures of 64 x 64 pixels, seed 1
"""
import pathlib
import random
import struct
import sys
import zlib

NAMES = ['square', 'disc']


def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))


def png(rows):
    size = struct.pack('>IIBBBBB', len(rows[0]) // 3, len(rows), 8, 2, 0, 0, 0)
    data = zlib.compress(b''.join(b'\0' + bytes(row) for row in rows))
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', size) + chunk(b'IDAT', data) + chunk(b'IEND', b'')


def draw(size, rng):
    """A picture with one object in its left half, another one in its right half, or both, and its label text."""
    rows = [[rng.randrange(60, 120) for _ in range(3 * size)] for _ in range(size)]
    lines = []
    for left in rng.choice([[0], [size // 2], [0, size // 2]]):
        kind = rng.randrange(len(NAMES))
        side = rng.randrange(size // 4, size // 2)
        x = left + rng.randrange(size // 2 - side + 1)
        y = rng.randrange(size - side + 1)
        for row in range(side):
            for col in range(side):
                if kind == 0 or (2 * row + 1 - side) ** 2 + (2 * col + 1 - side) ** 2 <= side ** 2:
                    at = 3 * (x + col)
                    rows[y + row][at:at + 3] = [220, 30, 30] if kind == 0 else [30, 60, 230]
        box = [(x + side / 2) / size, (y + side / 2) / size, side / size, side / size]
        lines.append(f'{kind} ' + ' '.join(f'{number:.6f}' for number in box) + '\n')
    return png(rows), ''.join(lines)


def main():
    if len(sys.argv) not in range(3, 7) or sys.argv[1] not in ('cvat', 'roboflow'):
        sys.exit(__doc__)
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    pictures, size, seed = (list(map(int, sys.argv[3:])) + [20, 64, 1][len(sys.argv) - 3:])
    rng = random.Random(seed)
    listed = []
    for number in range(pictures):
        half = 'valid' if program == 'roboflow' and number % 5 == 4 else 'train'
        parts = [half, '{}'] if program == 'roboflow' else ['{}', half]
        picture, text = draw(size, rng)
        name = '/'.join(parts) + f'/{number:05d}.'
        listed.append(name.format('images') + 'png\n')
        for kind, ending, content in (('images', 'png', picture), ('labels', 'txt', text.encode())):
            path = folder / (name.format(kind) + ending)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    if program == 'roboflow':
        halves = 'train: ../train/images\nval: ../valid/images\n'
        classes = f'nc: {len(NAMES)}\nnames: {NAMES}\n'
    else:
        (folder / 'train.txt').write_text(''.join(listed))
        halves = 'path: ./\ntrain: train.txt\n'
        classes = 'names:\n' + ''.join(f'  {i}: {name}\n' for i, name in enumerate(NAMES))
    (folder / 'data.yaml').write_text(halves + classes)


main()
