#!/usr/bin/python3
"""Makes the golden files of Darknet's own inference, NAME.cfg, NAME.weights and NAME.safetensors, and compares the
PyTorch cases with Darknet.

    /usr/bin/python3 make_darknet_golden.py            makes the files
    /usr/bin/python3 make_darknet_golden.py --compare  runs Darknet on each PyTorch case that it can compute

Needs Debian's darknet and python3-torch. See README.md.
"""

import array
import pathlib
import sys
import zlib

import torch

from darknet_library import predict, predict_case, reference, write_weights
from make_torch_golden import model_text, random_inputs
from safetensors_file import read_safetensors, write_safetensors
from torch_cases import all_cases, conv
from torch_layers import (
    AvgPool,
    Connected,
    Convolutional,
    MaxPool,
    PassThrough,
    Reorg,
    Route,
    Shortcut,
    Softmax,
    SpaceToDepth,
    Upsample,
)

FOLDER = pathlib.Path(__file__).parent
BOUND = 1e-5  # single precision, relative to the largest value of the output


def classifier():
    def block(filters, size, **keys):
        return conv(filters, size, bn=True, activation="leaky", **keys)

    layers = [
        block(8, 3),
        MaxPool(2, 2),
        block(12, 3),  # 2
        MaxPool(2, 2),
        block(8, 1),  # 4
        block(12, 3),
        Shortcut(-2, "linear"),  # 6: 12 channels, 8 of them added to
        block(16, 3, stride=2),  # 7: the map is halved
        Shortcut(-2, "leaky"),  # 8: layer 6 sampled
        Route((6,)),
        block(4, 1),
        Reorg(2),
        Route((-1, 8)),
        conv(10),
        AvgPool(),
        Softmax(),
        PassThrough("cost", {"type": "sse"}),
    ]
    return (1, 3, 32, 24), layers


def mixed():
    layers = [
        conv(8, 5, stride=2, padding=2, bn=True, activation="relu"),
        conv(8, 3, groups=4, activation="elu"),
        conv(12, 4, stride=2, activation="tanh"),
        conv(12, 3, groups=12, bn=True, activation="leaky"),
        Upsample(2),
        Route((-1,)),
        MaxPool(3, 2),
        conv(6, 2, activation=None),
        MaxPool(3, 1),
        Connected(24, bn=True, activation="leaky"),
        PassThrough("dropout", {"probability": 0.4}),
        Connected(16, activation="relu"),
        Connected(12),
        Softmax(groups=3, temperature=2.0),
    ]
    return (1, 3, 27, 21), layers


def strain(parameters, generator):
    """Variances that a trained network has in dead channels, from 0 up, scaled so that the outputs stay moderate."""
    for name, variance in parameters.items():
        if name.endswith(".bn.variance"):
            small = torch.tensor([0.0, 3e-9, 1e-6, 2e-5], dtype=torch.float64)
            chosen = torch.randperm(len(variance), generator=generator)[: len(small)]
            variance[chosen] = small[: len(chosen)]
            parameters[name.replace("variance", "scale")][chosen] *= small.sqrt() + 1e-6


def make(name, image_shape, layers):
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    inputs = {
        tensor: value.float().double()
        for tensor, value in random_inputs(image_shape, layers, generator).items()
    }
    strain(inputs, generator)
    inputs = {tensor: value.float().double() for tensor, value in inputs.items()}
    image = torch.rand(image_shape, generator=generator, dtype=torch.float64).float().double()
    output_shape = tuple(inputs.pop("output_gradient").shape)
    (FOLDER / f"{name}.cfg").write_text(model_text(image_shape, layers))
    write_weights(FOLDER / f"{name}.weights", layers, inputs)
    found = predict(FOLDER / f"{name}.cfg", FOLDER / f"{name}.weights", image, output_shape)
    difference = relative_difference(found, reference(layers, image, inputs))
    print(f"{name}: Darknet and PyTorch differ by {difference:.1e}; output {found.flatten()[:4]} ...")
    assert difference < BOUND
    write_safetensors(
        FOLDER / f"{name}.safetensors",
        {
            "input": (image_shape, array.array("f", image.flatten().tolist())),
            "expected.output": (output_shape, array.array("f", found.flatten().tolist())),
        },
    )


def relative_difference(found, expected):
    return float((found.double() - expected).abs().max() / expected.abs().max())


def lacking(layers):
    """What Debian's Darknet cannot compute, or None."""
    for layer in layers:
        if isinstance(layer, SpaceToDepth):
            return "space_to_depth"
        if isinstance(layer, Route) and layer.groups > 1:
            return "grouped route"
        if isinstance(layer, Softmax) and layer.spatial:
            return "spatial softmax without a GPU"
        if isinstance(layer, Convolutional) and layer.size == 1 and layer.stride > 1:
            return "1x1 filters with a stride (it reads the wrong cells)"
        if getattr(layer, "activation", None) in ("relu6", "swish", "mish"):
            return layer.activation
    return None


def compare():
    failed = 0
    for name, (image_shape, layers) in all_cases().items():
        if missing := lacking(layers):
            print(f"{name:40} not in Darknet: {missing}")
            continue
        inputs = {
            tensor: torch.tensor(values, dtype=torch.float64).reshape(shape)
            for tensor, (shape, values) in read_safetensors(FOLDER / f"{name}.safetensors").items()
        }
        image, output = inputs["input"], inputs["expected.output"]
        found = predict_case(FOLDER / f"{name}.cfg", layers, image, inputs, output.shape)
        normalised = any(tensor.endswith("bn.mean") for tensor in inputs)
        expected = reference(layers, image, inputs) if normalised else output
        difference = relative_difference(found, expected)
        failed += not difference < BOUND
        print(f"{name:40} {difference:.1e}{'' if difference < BOUND else '  DIFFERS'}")
    return failed


def main():
    if sys.argv[1:] == ["--compare"]:
        sys.exit(1 if compare() else 0)
    make("darknet_classifier", *classifier())
    make("darknet_mixed", *mixed())


if __name__ == "__main__":
    main()
