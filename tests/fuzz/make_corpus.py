#!/usr/bin/python3
"""Makes the binary seeds of corpus/: safetensors, .weights, IDX, CIFAR, pictures, ONNX, and Darknet's .data files with
what they name, all small, some with a lie in them.

    /usr/bin/python3 make_corpus.py        needs Debian's python3-pil

Model files and partitions are written by hand; what a fuzzer found is kept as it was found.
"""

import gzip
import io
import json
import pathlib
import random
import struct
import zlib

from PIL import Image

CORPUS = pathlib.Path(__file__).parent / "corpus"
RANDOM = random.Random(3)


def put(name, content):
    path = CORPUS / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def floats(count):
    return struct.pack(f"<{count}f", *(RANDOM.gauss(0, 1) for _ in range(count)))


def positive_floats(count):
    return struct.pack(f"<{count}f", *(RANDOM.expovariate(1) for _ in range(count)))


def safetensors(header, data):
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def make_safetensors():
    tensors = {
        "__metadata__": {"step": "12", "model": "[net]\nheight=1\n"},
        "scalar": {"dtype": "F64", "shape": [], "data_offsets": [0, 8]},
        "integers": {"dtype": "I64", "shape": [2], "data_offsets": [8, 24]},
        "weight": {"dtype": "F32", "shape": [2, 1, 3], "data_offsets": [24, 48]},
        "empty": {"dtype": "F32", "shape": [0, 4], "data_offsets": [48, 48]},
        "bytes": {"dtype": "U8", "shape": [3], "data_offsets": [48, 51]},
    }
    whole = safetensors(tensors, bytes(51))
    put("safetensors/valid", whole)
    put("safetensors/valid_without_tensors", safetensors({}, b""))
    put("safetensors/cut", whole[:-1])
    tensors["weight"]["shape"] = [1 << 32, 1 << 32, 6]
    put("safetensors/overflow", safetensors(tensors, bytes(51)))
    tensors["weight"] = {"dtype": "F32", "shape": [4], "data_offsets": [16, 32]}
    put("safetensors/overlap", safetensors(tensors, bytes(51)))
    put("safetensors/deep", struct.pack("<Q", 4000) + b"[" * 4000)


def make_weights():
    """For the network of fuzz_networks.h; the first byte is the harness's choice."""
    layers = [
        floats(3 * 4) + positive_floats(4) + floats(4 * 1 * 9),  # convolutional, normalised, 2 groups
        floats(4 + 4 * 4 * 9),
        floats(5 + 5 * 4 * 5 * 4) + floats(2 * 5) + positive_floats(5),  # connected, normalised
        floats(3 + 3 * 5),
    ]
    header = struct.pack("<iiiQ", 0, 2, 0, 6400)
    whole = header + b"".join(layers)
    put("weights/valid", b"\0" + whole)
    put("weights/valid_old", b"\2" + struct.pack("<iiii", 1001, 0, 0, 64) + b"".join(layers))
    put("weights/valid_partial", b"\1" + header + layers[0])
    put("weights/cut", b"\0" + whole[:-2])
    put("weights/negative_variance", b"\0" + header + b"".join(layers)[:48] + floats(4) * 300)


def idx(sizes, values):
    return struct.pack(">BBBB", 0, 0, 8, len(sizes)) + struct.pack(f">{len(sizes)}I", *sizes) + values


def make_idx():
    pictures = idx([2, 3, 4], bytes(range(0, 240, 10)))
    labels = idx([2], b"\1\0")

    def seed(choices, images, rest):
        return struct.pack("<BH", choices, len(images)) + images + rest

    put("idx/valid", seed(0, pictures, labels))
    put("idx/valid_colour", seed(3, pictures, b""))
    packed = gzip.compress(pictures, mtime=0)
    put("idx/valid_gzip", seed(0, packed, gzip.compress(labels, mtime=0)))
    put("idx/gzip_cut", seed(1, packed[:-3], b""))
    put("idx/too_many", seed(1, idx([1 << 31, 3, 4], bytes(24)), b""))
    put("idx/fewer_labels", seed(0, pictures, idx([1], b"\1")))


def make_cifar():
    names = b"".join(b"class %d\n" % i for i in range(10))
    pixels = bytes(i % 251 for i in range(3 * 32 * 32))

    def seed(choices, names, records):
        return struct.pack("<BH", choices, len(names)) + names + records

    put("cifar/valid", seed(2, names, b"\3" + pixels))
    put("cifar/valid_filled_up", seed(4, b"", b"\x09" + pixels[:9]))
    put("cifar/valid_fine", seed(5, b"", b"\x13\x63" + pixels[:9]))
    put("cifar/fine_names", seed(7, names, b"\x13\x63"))
    put("cifar/cut", seed(0, b"", b"\3" + pixels[:-1]))
    put("cifar/label_without_class", seed(4, b"", b"\x0a"))
    put("cifar/fewer_names", seed(6, names[:-8], b"\3"))


def make_darknet_data():
    """The .data file, list.txt, labels.txt and names.txt, with 0x1d between them."""

    def seed(*texts):
        return b"\x1d".join(texts)

    head = b"classes = 2\ntrain = list.txt\nvalid=list.txt\n"
    paths = b"some/dog_1.jpg\nsome/bulldog_2.jpg\n\nother/dog/cat_3.png\n"
    labels = b"dog\nbulldog\n"
    both = head + b"labels=labels.txt\nnames=names.txt\n"
    put("darknet_data/valid", seed(both, paths, labels, b"a dog\na bulldog\n"))
    put("darknet_data/valid_labels", seed(b"# no count\n" + head[12:] + b"labels = labels.txt\n", paths, labels))
    put("darknet_data/valid_names", seed(head + b"names\t=names.txt\nbackup = /\n", paths, b"", labels + b"cat\n"))
    named = head + b"labels=labels.txt\n"
    put("darknet_data/no_equals", seed(named + b"names\n", paths, labels))
    put("darknet_data/no_list", seed(named.replace(b"list", b"lists"), paths, labels))
    put("darknet_data/no_label_in_path", seed(named, paths + b"some/cow_1.jpg\n", labels))
    put("darknet_data/two_labels_in_path", seed(named, b"some/dog_cat.jpg\n", b"dog\ncat\n"))
    numbered = b"train/cat01.png\ntrain/7cat_2.png\ncat/cat1.png\ndog/2024cat.png\ndog/all/cat3.png\ntrain/class1.png\nclass10/9.png\n"
    classes = b"cat\nclass1\nclass10\ndog\n"
    put("darknet_data/valid_numbered_labels", seed(named.replace(b"2", b"4"), numbered, classes))
    put("darknet_data/numbers_are_classes", seed(named.replace(b"2", b"3"), b"class12.png\nclass100.png\n", b"class\nclass1\nclass10\n"))
    longer = b"golden retriever1.png\nretriever/golden retriever1.png\nretriever_2.png\ntrain/c5.png\nc5/9f3retriever2.png\nc5.d/.c5\n"
    put("darknet_data/valid_longer_labels", seed(named.replace(b"2", b"3"), longer, b"retriever\ngolden retriever\nc\n"))
    accents = "\u00e9t\u00e93.png\n\u00e9t\u00e93\u00e9.png\nhiver/\u00e9t\u00e9/4.png\n".encode()
    put("darknet_data/valid_accented_labels", seed(named, accents, "\u00e9t\u00e9\nhiver\n".encode()))
    put("darknet_data/same_label_twice", seed(named, paths, b"dog\ndog\n"))
    put("darknet_data/more_classes_than_labels", seed(named.replace(b"2", b"999999"), paths, labels))
    put("darknet_data/more_classes_than_numbers", seed(named.replace(b"2", b"99999999999999999999"), paths, labels))
    put("darknet_data/list_of_zeros", seed(named, bytes(40), labels))
    put("darknet_data/list_is_a_folder", seed(named.replace(b"list.txt", b".."), paths, labels))


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(cols, rows, depth, colour, interlaced, pixels, extra=b""):
    head = struct.pack(">IIBBBBB", cols, rows, depth, colour, 0, 0, interlaced)
    body = chunk(b"IHDR", head) + extra + chunk(b"IDAT", zlib.compress(pixels, 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def make_png():
    def lines(count, width):
        return b"".join(bytes([i % 5]) + RANDOM.randbytes(width) for i in range(count))

    put("picture/valid_grey.png", png(5, 7, 8, 0, 0, lines(7, 5)))
    put("picture/valid_colour.png", png(4, 5, 8, 2, 0, lines(5, 12)))
    put("picture/valid_alpha16.png", png(3, 5, 16, 6, 0, lines(5, 24)))
    palette = chunk(b"PLTE", RANDOM.randbytes(12)) + chunk(b"tRNS", RANDOM.randbytes(4))
    put("picture/valid_palette.png", png(8, 4, 2, 3, 0, lines(4, 2), palette))
    put("picture/valid_interlaced.png", png(2, 2, 8, 0, 1, b"\0\1" + b"\0\2" + b"\0\3\4"))
    put("picture/huge.png", png(1 << 24, 1 << 24, 8, 2, 0, b"\0" * 100))
    put("picture/short.png", png(9, 9, 8, 2, 0, lines(5, 12)))


def make_jpeg():
    def jpeg(mode, cols, rows, **options):
        channels = len(Image.new(mode, (1, 1)).getbands())
        image = Image.frombytes(mode, (cols, rows), RANDOM.randbytes(channels * cols * rows))
        out = io.BytesIO()
        image.save(out, "JPEG", quality=30, optimize=True, **options)
        return out.getvalue()

    put("picture/valid_grey.jpg", jpeg("L", 11, 9))
    put("picture/valid_colour.jpg", jpeg("RGB", 18, 17, subsampling="4:2:0"))
    put("picture/valid_progressive.jpg", jpeg("RGB", 17, 9, progressive=True, subsampling="4:2:2"))
    put("picture/valid_cmyk.jpg", jpeg("CMYK", 9, 8))
    whole = jpeg("RGB", 9, 9, subsampling="4:4:4")
    put("picture/cut.jpg", whole[: len(whole) * 3 // 4])


def exif(orientation):
    block = Image.Exif()
    block[0x112] = orientation
    return block


def image(mode, cols, rows):
    channels = len(Image.new(mode, (1, 1)).getbands())
    return Image.frombytes(mode, (cols, rows), RANDOM.randbytes(channels * cols * rows))


def packed(picture, kind, **options):
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def make_turned():
    put("picture/valid_turned.jpg", packed(image("RGB", 12, 7), "JPEG", exif=exif(6)))
    put("picture/valid_turned.png", packed(image("RGB", 5, 7), "PNG", exif=exif(8)))
    put("picture/valid_turned.webp", packed(image("RGB", 9, 7), "WEBP", exif=exif(5)))


def make_webp():
    put("picture/valid_lossy.webp", packed(image("RGB", 18, 11), "WEBP", quality=40))
    whole = packed(image("RGBA", 7, 9), "WEBP", lossless=True)
    put("picture/valid_lossless.webp", whole)
    put("picture/cut.webp", whole[:-20])
    frames = [image("RGB", 8, 8) for _ in range(2)]
    put("picture/valid_animated.webp", packed(frames[0], "WEBP", save_all=True, append_images=frames[1:]))


def make_gif():
    whole = packed(image("P", 13, 9), "GIF", interlace=0)
    put("picture/valid.gif", whole)
    put("picture/cut.gif", whole[:-9])
    put("picture/valid_interlaced.gif", packed(image("P", 9, 13), "GIF", interlace=1))
    frames = [image("P", 6, 5) for _ in range(3)]
    put("picture/valid_animated.gif", packed(frames[0], "GIF", save_all=True, append_images=frames[1:]))


def bmp(cols, rows, bits, compression, palette, pixels):
    offset = 54 + len(palette)
    info = struct.pack("<IiiHHIIiiII", 40, cols, rows, 1, bits, compression, len(pixels), 0, 0, 0, 0)
    return struct.pack("<2sIHHI", b"BM", offset + len(pixels), 0, 0, offset) + info + palette + pixels


def make_bmp():
    put("picture/valid_colour.bmp", packed(image("RGB", 7, 5), "BMP"))
    put("picture/valid_palette.bmp", packed(image("P", 7, 5), "BMP"))
    put("picture/valid_black_and_white.bmp", packed(image("L", 11, 5).convert("1"), "BMP"))
    put("picture/valid_top_down.bmp", bmp(5, -3, 24, 0, b"", RANDOM.randbytes(48)))
    put("picture/valid_16_bits.bmp", bmp(3, 4, 16, 0, b"", RANDOM.randbytes(32)))
    masks = struct.pack("<III", 0xF800, 0x7E0, 0x1F)
    put("picture/valid_masks.bmp", bmp(4, 4, 16, 3, masks, RANDOM.randbytes(32)))
    put("picture/valid_16_colours.bmp", bmp(5, 2, 4, 0, RANDOM.randbytes(64), RANDOM.randbytes(8)))
    put("picture/huge.bmp", bmp(1 << 30, 1 << 30, 32, 0, b"", bytes(64)))
    put("picture/palette_missing.bmp", bmp(1, 1, 8, 0, b"", b""))
    put("picture/run_lengths.bmp", bmp(5, 5, 8, 1, bytes(1024), bytes(64)))


def make_lies():
    more = bytes(29) * 28 + bytes(1 << 20)
    put("picture/more_than_its_size.png", png(28, 28, 8, 0, 0, more))
    put("picture/huge_in_pixels.png", png(60000, 60000, 1, 0, 0, bytes(1000)))
    whole = packed(image("L", 8, 8), "JPEG")
    frame = whole.index(b"\xff\xc0")
    put("picture/huge.jpg", whole[: frame + 5] + b"\x1f\xff\x1f\xff" + whole[frame + 9 :])


def varint(number):
    content = b""
    while number > 127:
        content += bytes([number & 127 | 128])
        number >>= 7
    return content + bytes([number])


def field(number, value):
    """Of a message: an integer, or bytes or text with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def attribute(name, value):
    if isinstance(value, int):
        return field(5, field(1, name) + field(3, value))
    if isinstance(value, str):
        return field(5, field(1, name) + field(4, value))
    return field(5, field(1, name) + b"".join(field(8, number) for number in value))


def node(kind, inputs, outputs, **attributes):
    return field(
        1,
        b"".join(field(1, name) for name in inputs)
        + b"".join(field(2, name) for name in outputs)
        + field(3, "n" + outputs[0])
        + field(4, kind)
        + b"".join(attribute(name, value) for name, value in attributes.items()),
    )


def initializer(name, shape, numbers):
    is_integer = isinstance(numbers[0], int)
    raw = struct.pack(f"<{len(numbers)}{'q' if is_integer else 'f'}", *numbers)
    sides = b"".join(field(1, side) for side in shape)
    return field(5, sides + field(2, 7 if is_integer else 1) + field(8, name) + field(9, raw))


def onnx(parts, shape=(1, 4, 8, 8), outputs=("y",)):
    sides = b"".join(field(1, field(1, side)) for side in shape)
    image = field(1, "x") + field(2, field(1, field(1, 1) + field(2, sides)))
    graph = b"".join(parts) + field(11, image)
    graph += b"".join(field(12, field(1, name)) for name in outputs)
    return field(1, 7) + field(7, graph) + field(8, field(2, 13))


def make_onnx():
    weight = initializer("w", (4, 4, 3, 3), [0.1] * 144)
    conv = node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1])
    norm = [initializer(name, (4,), [0.5] * 4) for name in ("s", "b", "m", "v")]
    norm.append(node("BatchNormalization", ["c", "s", "b", "m", "v"], ["n"]))
    put("onnx/valid_conv", onnx([weight, conv, *norm, node("Relu", ["n"], ["y"])]))
    swish = [node("Sigmoid", ["c"], ["g"]), node("Mul", ["c", "g"], ["h"])]
    pool = node("MaxPool", ["h"], ["p"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    scales = initializer("r", (4,), [1.0, 1.0, 2.0, 2.0])
    up = node("Resize", ["p", "", "r"], ["u"], coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    join = [node("Concat", ["u", "h"], ["j"], axis=1), node("Split", ["j"], ["y", "z"], axis=1)]
    put("onnx/valid_join", onnx([weight, conv, *swish, scales, pool, up, *join], outputs=("y", "z")))
    numbers = [initializer("i0", (1,), [0]), initializer("i1", (1,), [-1])]
    size = [node("Shape", ["x"], ["sh"]), node("Gather", ["sh", "i0"], ["ga"])]
    size.append(node("Concat", ["ga", "i1"], ["to"], axis=0))
    dense = [initializer("d", (256, 3), [0.1] * 768), node("Reshape", ["x", "to"], ["f"])]
    dense += [node("MatMul", ["f", "d"], ["q"]), node("Softmax", ["q"], ["y"])]
    put("onnx/valid_dense", onnx([*numbers, *size, *dense]))
    slices = [initializer("ax", (2,), [2, 3]), initializer("st", (2,), [2, 2]), initializer("en", (2,), [9, 9])]
    for row, col in ((0, 0), (1, 0), (0, 1), (1, 1)):
        slices.append(initializer(f"o{row}{col}", (2,), [row, col]))
        slices.append(node("Slice", ["x", f"o{row}{col}", "en", "ax", "st"], [f"f{row}{col}"]))
    slices.append(node("Concat", ["f00", "f10", "f01", "f11"], ["fo"], axis=1))
    slices += [initializer("w1", (2, 16, 1, 1), [0.1] * 32), node("Conv", ["fo", "w1"], ["y"])]
    put("onnx/valid_focus", onnx(slices))
    tail = [initializer("ts", (3,), [0, 4, -1]), node("Reshape", ["c", "ts"], ["t"])]
    tail += [node("Transpose", ["t"], ["tt"], perm=[0, 2, 1]), node("Sigmoid", ["tt"], ["y"])]
    put("onnx/valid_tail", onnx([weight, conv, *tail]))
    put("onnx/weight_that_lies", onnx([initializer("w", (1 << 40, 4, 3, 3), [0.1] * 144), conv], outputs=("c",)))
    put("onnx/huge_input", onnx([weight, conv], (1, 4, 1 << 40, 1 << 40), ("c",)))
    put("onnx/stride_0", onnx([weight, node("Conv", ["x", "w"], ["c"], strides=[0, 0])], outputs=("c",)))


if __name__ == "__main__":
    make_safetensors()
    make_weights()
    make_idx()
    make_cifar()
    make_darknet_data()
    make_png()
    make_jpeg()
    make_turned()
    make_webp()
    make_gif()
    make_bmp()
    make_lies()
    make_onnx()
