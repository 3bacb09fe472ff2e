#!/usr/bin/python3
"""Lists the distinct layers of networks as the CSV that layers.py measures.

    bench/layers/layer_list.py models/mobilenetv2.cfg yolov4-tiny.cfg yolov7-tiny.cfg enet-coco.cfg bench/layers/others.cfg > bench/layers/layers.csv

A row is a layer of one kind, shape and options: the network that has it, its first number there and how often it occurs, the maps that
it reads (CxHxW, several with + between them), and the section of the model file on one line. Heads and losses are left out, and the
two dense ends of a network, [connected] and [softmax].
"""

import csv
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cfg_sections import sections  # noqa: E402

# Options that say what a layer computes; those that name other layers are in the maps it reads.
KEPT = ("batch_normalize", "filters", "size", "stride", "pad", "padding", "groups", "group_id", "dilation", "activation", "scale_wh")
LEFT_OUT = ("yolo", "region", "detection", "cost", "softmax", "connected", "dropout")


def out_shape(kind, options, inputs):
    channels, height, width = inputs[0]
    whole = lambda key, default: int(options.get(key, default))
    stride = whole("stride", 1)
    if kind == "convolutional":
        size = whole("size", 1)
        reach = (size - 1) * whole("dilation", 1)
        around = 2 * (reach // 2 if whole("pad", 0) else whole("padding", 0))
        return (whole("filters", 1), (height + around - reach - 1) // stride + 1, (width + around - reach - 1) // stride + 1)
    if kind == "maxpool":
        size = whole("size", stride)
        around = whole("padding", size - 1)
        return (channels, (height + around - size) // stride + 1, (width + around - size) // stride + 1)
    if kind == "upsample":
        return (channels, height * stride, width * stride)
    if kind == "avgpool":
        return (channels, 1, 1)
    if kind == "route":
        return (sum(shape[0] for shape in inputs) // whole("groups", 1), height, width)
    if kind == "scale_channels":
        return inputs[1]
    if kind in ("shortcut", "sam", *LEFT_OUT):
        return inputs[0]
    raise SystemExit(f"[{kind}] is not known here")


def layers_of(path):
    """(index, kind, options, shapes of the maps read) of each layer."""
    (_, net), *layers = sections(path)
    shapes = []
    last = (int(net.get("channels", 3)), int(net["height"]), int(net["width"]))
    for index, (kind, options) in enumerate(layers):
        sources = [int(number) for number in (options.get("layers") or options.get("from") or "").split(",") if number]
        inputs = [shapes[source if source >= 0 else index + source] for source in sources]
        if kind != "route":
            inputs.insert(0, last)
        yield index, kind, options, inputs
        last = out_shape(kind, options, inputs)
        shapes.append(last)


def main():
    rows = {}
    for path in sys.argv[1:]:
        network = pathlib.Path(path).stem
        for index, kind, options, inputs in layers_of(path):
            copies_nothing = kind == "route" and len(inputs) == 1 and int(options.get("groups", 1)) == 1
            if kind in LEFT_OUT or copies_nothing:
                continue
            maps = "+".join("x".join(map(str, shape)) for shape in inputs)
            section = " ".join([f"[{kind}]", *(f"{key}={options[key]}" for key in KEPT if key in options)])
            # The gradient of the image is nobody's: the first layer is another one where shapes are equal.
            rows.setdefault((network, index == 0, maps, section), [index, 0])[1] += 1
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["network", "layer", "count", "maps", "section"])
    for (network, _, maps, section), (index, count) in rows.items():
        out.writerow([network, index, count, maps, section])


if __name__ == "__main__":
    main()
