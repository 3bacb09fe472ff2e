"""Safetensors files by hand, with the standard library alone.

A tensor is a pair (shape, values): a tuple of integers and an array.array of 'd' (F64) or 'f' (F32), last dimension
fastest. Layout of a file: 8 bytes of header length, a JSON header padded with spaces to 8 bytes, the numbers;
everything little-endian.
"""

import array
import json
import struct
import sys

_NAMES = {"d": "F64", "f": "F32"}
_CODES = {name: code for code, name in _NAMES.items()}


def _little_endian(values):
    if sys.byteorder == "big":
        values = array.array(values.typecode, values)
        values.byteswap()
    return values


def write_safetensors(path, tensors):
    header = {}
    end = 0
    for name in sorted(tensors):
        shape, values = tensors[name]
        begin, end = end, end + len(values) * values.itemsize
        header[name] = {
            "dtype": _NAMES[values.typecode],
            "shape": list(shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)))
        out.write(text)
        for name in sorted(tensors):
            out.write(_little_endian(tensors[name][1]).tobytes())


def read_safetensors(path):
    with open(path, "rb") as file:
        content = file.read()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        values = array.array(_CODES[entry["dtype"]], content[begin:end])
        tensors[name] = (tuple(entry["shape"]), _little_endian(values))
    return tensors
