#!/usr/bin/python3
"""Makes the golden files from PyTorch in double precision: NAME.cfg and NAME.safetensors for each case.

    /usr/bin/python3 make_torch_golden.py [NAME...]

Needs Debian's python3-torch. See README.md for what the files hold. Prints for each case how far single precision
in PyTorch itself is from double, which is what the bound of the single-precision test rests on.
"""

import array
import pathlib
import sys
import zlib

import torch

from safetensors_file import write_safetensors
from torch_cases import all_cases
from torch_layers import Run

FOLDER = pathlib.Path(__file__).parent
# No value comes nearer than this to a kink or a tie, relative to the largest of its map: single precision moves
# values by 1e-6 or so and must not flip one.
MARGIN = 1e-4
NETWORK_MARGIN = 5e-5  # they have some 10,000 values; nearly every seed would fail the above


def model_text(image, layers):
    n, c, h, w = image
    head = f"[net]\nbatch={n}\nheight={h}\nwidth={w}\nchannels={c}\n"
    return "\n".join([head] + [layer.text() for layer in layers])


def random_parameter(name, shape, generator):
    def normal():
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    def uniform(low, high):
        return low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)

    if name == "weight":
        return normal() * 1.3 / (normal()[0].numel() ** 0.5)
    if name == "bn.scale":
        return torch.where(normal() < 0, -1.0, 1.0) * uniform(0.5, 1.5)
    if name == "bn.variance":
        return uniform(0.3, 2)
    return normal() * 0.3


def forward(layers, image, parameters, frozen):
    run = Run(parameters, frozen, maps=[image])
    for index, layer in enumerate(layers):
        run.maps.append(layer.forward(run, f"layers.{index}"))
    return run


def random_inputs(image, layers, generator):
    """`input` and the parameters; a map's shape is found by running the layers below it."""
    inputs = {"input": torch.randn(image, generator=generator, dtype=torch.float64)}
    run = Run({}, True, maps=[inputs["input"]])
    for index, layer in enumerate(layers):
        for name, shape in layer.parameters(*run.maps[-1].shape[1:]).items():
            inputs[f"layers.{index}.{name}"] = random_parameter(name, shape, generator)
        run.parameters = inputs
        run.maps.append(layer.forward(run, f"layers.{index}"))
    inputs["output_gradient"] = torch.randn(
        run.maps[-1].shape, generator=generator, dtype=torch.float64
    )
    return inputs


def vector_jacobian_product(layers, inputs, frozen):
    """The expected tensors, and the margin."""
    learnt = {
        name: value.clone().requires_grad_(not name.endswith((".mean", ".variance")))
        for name, value in inputs.items()
        if name != "output_gradient"
    }
    run = forward(layers, learnt["input"], learnt, frozen)
    output = run.maps[-1]
    output.backward(inputs["output_gradient"])
    expected = {"output": output.detach()} | run.statistics
    for name, value in learnt.items():
        if value.requires_grad:
            gradient = torch.zeros_like(value) if value.grad is None else value.grad
            expected["input_gradient" if name == "input" else name] = gradient
    return expected, run.margin


def largest_difference(found, expected):
    """Relative to the largest element of each tensor; its name too."""
    worst = (0.0, "")
    for name, value in expected.items():
        scale = float(value.abs().max())
        difference = float((found[name].double() - value).abs().max())
        worst = max(worst, (difference / scale if scale else difference, name))
    return worst


def accept(name, expected):
    """A gradient that is rounding noise instead of zero could not be compared."""
    for tensor, value in expected.items():
        largest = float(value.abs().max())
        assert largest == 0 or largest > 1e-6, f"{name}: {tensor} is {largest}"


def make_case(name, image, layers):
    frozen = name.startswith("frozen_")
    wanted = NETWORK_MARGIN if name.startswith("network_") else MARGIN
    for attempt in range(1000):
        generator = torch.Generator().manual_seed(zlib.crc32(name.encode()) + attempt)
        inputs = random_inputs(image, layers, generator)
        expected, margin = vector_jacobian_product(layers, inputs, frozen)
        if margin >= wanted:
            break
    else:
        raise RuntimeError(f"{name}: no seed keeps clear of kinks and ties")
    accept(name, expected)
    single = {tensor: value.float() for tensor, value in inputs.items()}
    error, where = largest_difference(vector_jacobian_product(layers, single, frozen)[0], expected)
    tensors = inputs | {f"expected.{tensor}": value for tensor, value in expected.items()}
    write_safetensors(
        FOLDER / f"{name}.safetensors",
        {
            tensor: (tuple(value.shape), array.array("d", value.contiguous().flatten().tolist()))
            for tensor, value in tensors.items()
        },
    )
    (FOLDER / f"{name}.cfg").write_text(model_text(image, layers))
    print(f"{name:40} attempts {attempt + 1:3}  margin {margin:.1e}  single {error:.1e} {where}")


def main():
    torch.set_num_threads(1)
    wanted = sys.argv[1:]
    for name, (image, layers) in all_cases().items():
        if not wanted or name in wanted:
            make_case(name, image, layers)


if __name__ == "__main__":
    main()
