#!/usr/bin/python3
"""Lists the distinct layers of networks as the CSV that layers.py measures.

    bench/layers/layer_list.py models/mobilenetv2.cfg yolov4-tiny.cfg yolov7-tiny.cfg enet-coco.cfg models/yolox-nano.cfg bench/layers/others.cfg > bench/layers/layers.csv

A row is a layer of one kind, shape and options: the network that has it, its first number there and how often it occurs, the maps that
it reads (CxHxW, several with + between them), and the section of the model file on one line. Heads and losses are left out, and the
two dense ends of a network, [connected] and [softmax].
"""

import csv
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cfg_network import LOSSES, read_network  # noqa: E402

# Options that say what a layer computes; those that name other layers are in the maps it reads.
KEPT = ("batch_normalize", "filters", "size", "stride", "pad", "padding", "groups", "group_id", "dilation", "activation", "scale_wh", "size_y", "size_x", "stride_y",
        "stride_x", "padding_y", "padding_x", "padding_end", "padding_end_y", "padding_end_x", "maxpool_depth", "out_channels", "mode", "scale", "reverse", "alpha",
        "beta")
LEFT_OUT = (*LOSSES, "connected", "dropout", "crop")


def main():
    rows = {}
    for path in sys.argv[1:]:
        network = pathlib.Path(path).stem
        for index, layer in enumerate(read_network(path).layers):
            copies_nothing = layer.kind == "route" and len(layer.inputs) == 1 and layer.whole("groups", 1) == 1
            if layer.kind in LEFT_OUT or copies_nothing:
                continue
            maps = "+".join("x".join(map(str, shape)) for shape in layer.inputs)
            section = " ".join([f"[{layer.kind}]", *(f"{key}={layer.options[key]}" for key in KEPT if key in layer.options)])
            # The gradient of the image is nobody's: the first layer is another one where shapes are equal.
            rows.setdefault((network, index == 0, maps, section), [index, 0])[1] += 1
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["network", "layer", "count", "maps", "section"])
    for (network, _, maps, section), (index, count) in rows.items():
        out.writerow([network, index, count, maps, section])


if __name__ == "__main__":
    main()
