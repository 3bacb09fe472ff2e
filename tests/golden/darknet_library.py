"""Debian's Darknet through its shared library, and the .weights files it loads."""

import contextlib
import ctypes
import os
import pathlib
import struct
import tempfile

import torch

from torch_layers import Connected, Run

LIBRARY = "/usr/lib/darknet/libdarknet.so"


@contextlib.contextmanager
def quiet():
    """Darknet prints its layers to the standard error stream."""
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def predict(cfg_path, weights_path, image, output_shape):
    """The last layer's output in inference, as float32. `image` (N, C, H, W), N being the file's batch."""
    library = ctypes.CDLL(LIBRARY)
    library.load_network.restype = ctypes.c_void_p
    library.load_network.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int]
    library.network_predict.restype = ctypes.POINTER(ctypes.c_float)
    library.network_predict.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_float)]
    library.free_network.argtypes = [ctypes.c_void_p]
    values = image.float().flatten().tolist()
    with quiet():
        network = library.load_network(bytes(cfg_path), bytes(weights_path), 0)
        found = library.network_predict(network, (ctypes.c_float * len(values))(*values))
        output = torch.tensor(found[: torch.Size(output_shape).numel()], dtype=torch.float32)
        library.free_network(network)
    return output.reshape(output_shape)


def write_weights(path, layers, parameters):
    """Version 0.2.0: biases, then what belongs to batch normalisation, then weights; in dense layers weights first."""
    normalisation = ["bn.scale", "bn.mean", "bn.variance"]
    with open(path, "wb") as out:
        out.write(struct.pack("<iiiq", 0, 2, 0, 0))
        for index, layer in enumerate(layers):
            dense = isinstance(layer, Connected)
            middle = ["weight", *normalisation] if dense else [*normalisation, "weight"]
            for name in ["bias", *middle]:
                value = parameters.get(f"layers.{index}.{name}")
                if value is not None:
                    numbers = value.flatten().tolist()
                    out.write(struct.pack(f"<{len(numbers)}f", *numbers))


class DarknetRun(Run):
    """Normalises as Darknet does in inference: it divides by sqrt(variance) + 1e-6."""

    def normalise(self, prefix, x):
        scale, mean, variance = (
            self.parameters[f"{prefix}.bn.{name}"].reshape((1, -1) + (1,) * (x.dim() - 2))
            for name in ("scale", "mean", "variance")
        )
        return (x - mean) / (variance.sqrt() + 1e-6) * scale


def reference(layers, image, parameters):
    """The same in PyTorch."""
    run = DarknetRun(parameters, True, maps=[image])
    for index, layer in enumerate(layers):
        run.maps.append(layer.forward(run, f"layers.{index}"))
    return run.maps[-1]


def predict_case(cfg_path, layers, image, parameters, output_shape):
    with tempfile.TemporaryDirectory() as folder:
        weights_path = pathlib.Path(folder) / "case.weights"
        write_weights(weights_path, layers, parameters)
        return predict(cfg_path, weights_path, image, output_shape)
