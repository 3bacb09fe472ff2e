"""The cases: for each its image (N, C, H, W) and its layers. Names that start with frozen_ run with frozen statistics.

No convolution or dense layer without a rectifier between stands directly below a normalised one where that would
make a gradient vanish identically (a bias below a normalisation): a relative comparison would have nothing to hold.
"""

from torch_layers import (
    ACTIVATIONS,
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


def conv(filters, size=1, **keys):
    """A convolution that keeps the map's size (odd filters), unless told otherwise."""
    if "padding" not in keys and size > 1:
        keys |= {"padding": size // 2, "pad": True}
    return Convolutional(filters, size, **keys)


def convolution_cases():
    cases = {
        "conv_3x3": ((2, 3, 7, 9), [conv(5, 3)]),
        "conv_1x1": ((2, 6, 5, 4), [conv(4, activation="leaky")]),
        "conv_pad_overrides_padding": ((2, 3, 6, 5), [conv(4, 3, overridden=7)]),
        "conv_5x5_stride2_odd_map": ((2, 3, 13, 9), [conv(4, 5, stride=2, padding=2)]),
        "conv_3x3_no_padding": ((2, 3, 6, 8), [conv(4, 3, padding=0)]),
        "conv_2x2_pad": ((2, 3, 6, 7), [conv(4, 2)]),
        "conv_4x4_pad": ((2, 3, 7, 6), [conv(4, 4)]),
        "conv_4x4_pad_stride2": ((1, 3, 9, 10), [conv(4, 4, stride=2)]),
        "conv_stride_beyond_filter": ((2, 3, 11, 10), [conv(4, 2, stride=3, padding=0)]),
        "conv_1x1_stride2": ((2, 4, 7, 8), [conv(5, stride=2)]),
        "conv_7x7_filter_wider_than_map": ((2, 2, 4, 5), [conv(3, 7)]),
        "conv_groups2": ((2, 4, 6, 5), [conv(6, 3, groups=2)]),
        "conv_depthwise": ((2, 5, 7, 6), [conv(5, 3, groups=5, stride=2)]),
        "conv_resnext": (
            (2, 3, 6, 7),
            [
                conv(6, 3, activation="leaky"),
                conv(8, bn=True, activation="relu"),
                conv(8, 3, groups=4, bn=True, activation="relu"),
                conv(6, bn=True),
                Shortcut(-4, activation="relu"),
            ],
        ),
        "conv_no_activation": ((2, 3, 5, 6), [conv(4, 3, activation=None)]),
        "conv_chain": (
            (2, 3, 11, 9),
            [conv(4, 3, activation="leaky"), conv(5, 3, stride=2, activation="tanh"), conv(3, 2)],
        ),
    }
    for name in ACTIVATIONS:
        cases[f"activation_{name}"] = ((2, 3, 6, 5), [conv(4, 3, activation=name), conv(3, 3)])
    # Values large enough to be clamped at 6.
    cases["activation_relu6"][1].insert(0, Upsample(2, scale=4))
    return cases


def normalisation_cases():
    cases = {}
    for frozen in ("", "frozen_"):
        cases |= {
            f"{frozen}bn_conv": ((3, 3, 6, 5), [conv(4, 3, bn=True)]),
            f"{frozen}bn_conv_relu": ((3, 3, 6, 5), [conv(4, 3, bn=True, activation="relu")]),
            f"{frozen}bn_conv_chain": (
                (2, 3, 9, 11),
                [
                    conv(4, 3, bn=True, activation="leaky"),
                    conv(6, 3, stride=2, bn=True, activation="mish"),
                    conv(4, bn=True, activation="logistic"),
                ],
            ),
            f"{frozen}bn_connected": ((24, 2, 3, 4), [Connected(5, bn=True, activation="relu")]),
            f"{frozen}bn_one_cell": ((1, 4, 3, 3), [conv(5, 3, padding=0, bn=True)]),
        }
    return cases


def pooling_cases():
    return {
        "maxpool_2_2": ((2, 3, 6, 8), [MaxPool(2, 2)]),
        "maxpool_2_2_odd_map": ((2, 3, 7, 5), [MaxPool(2, 2)]),
        "maxpool_3_1": ((2, 3, 6, 5), [MaxPool(3, 1)]),
        "maxpool_2_1": ((2, 3, 5, 6), [MaxPool(2, 1)]),
        "maxpool_3_2": ((2, 3, 8, 7), [MaxPool(3, 2)]),
        "maxpool_4_3": ((2, 3, 10, 11), [MaxPool(4, 3)]),
        "maxpool_3_2_no_padding": ((2, 3, 9, 8), [MaxPool(3, 2, padding=0)]),
        "maxpool_2_3_stride_beyond_size": ((2, 3, 8, 10), [MaxPool(2, 3, padding=0)]),
        "maxpool_size_is_stride": ((2, 3, 9, 7), [MaxPool(3, 3, write_size=False)]),
        "maxpool_after_conv": (
            (2, 3, 9, 8),
            [conv(4, 3, activation="leaky"), MaxPool(3, 2), conv(3, 3)],
        ),
        "avgpool": ((3, 5, 4, 7), [AvgPool()]),
        "avgpool_between": ((3, 3, 6, 5), [conv(5, 3, activation="tanh"), AvgPool(), conv(4)]),
    }


def dense_cases():
    dropout = PassThrough("dropout", {"probability": 0.5})
    cost = PassThrough("cost", {"type": "sse"})
    return {
        "connected_after_map": ((3, 3, 4, 5), [conv(4, 3, activation="relu"), Connected(6)]),
        "connected_after_vector": (
            (3, 2, 3, 4),
            [Connected(7, activation="leaky"), Connected(5, activation=None)],
        ),
        "connected_bn_after_vector": (
            (32, 2, 3, 2),
            [Connected(7, activation="tanh"), Connected(5, bn=True, activation="leaky")],
        ),
        "dropout": ((2, 3, 4, 5), [conv(4, 3), dropout, conv(3)]),
        "cost": ((3, 2, 3, 4), [Connected(5), Softmax(), cost]),
        "softmax": ((3, 10, 1, 1), [Softmax()]),
        "softmax_of_map": ((2, 3, 4, 2), [Softmax()]),
        "softmax_groups": ((3, 12, 1, 1), [Softmax(groups=3)]),
        "softmax_groups_of_map": ((2, 4, 3, 2), [Softmax(groups=2)]),
        "softmax_spatial": ((2, 5, 3, 4), [Softmax(spatial=True)]),
        "softmax_temperature": ((3, 9, 1, 1), [Softmax(temperature=2.5)]),
    }


def graph_cases():
    return {
        "shortcut_same": ((2, 3, 6, 5), [conv(4, 3), conv(4, 3, activation="tanh"), Shortcut(-2)]),
        "shortcut_activation": ((2, 3, 6, 5), [conv(4, 3), conv(4, 3), Shortcut(-2, "leaky")]),
        "shortcut_source_more_channels": ((2, 3, 6, 5), [conv(6, 3), conv(4, 3), Shortcut(-2)]),
        "shortcut_source_fewer_channels": (
            (2, 3, 6, 5),
            [conv(3, 3), conv(5, 3), Shortcut(-2, "relu")],
        ),
        "shortcut_source_larger": (
            (2, 3, 12, 6),
            [conv(4, 3), conv(5, 3, stride=3), Shortcut(-2, "leaky")],
        ),
        "shortcut_source_smaller": (
            (2, 3, 4, 6),
            [conv(4, 3, stride=2), Upsample(2), conv(3, 3), Shortcut(-3, "leaky")],
        ),
        "shortcut_source_three_times_smaller": (
            (1, 2, 6, 9),
            [conv(4, 3, stride=3), Upsample(3), conv(4, 3), Shortcut(-3)],
        ),
        "shortcut_alpha_beta": (
            (2, 3, 8, 6),
            [conv(4, 3), conv(5, 3, stride=2), Shortcut(-2, "leaky", alpha=0.5, beta=-1.5)],
        ),
        "route_one": ((2, 3, 5, 6), [conv(4, 3), conv(5, 3), Route((-2,)), conv(3)]),
        "route_absolute": (
            (2, 3, 5, 6),
            [conv(4, 3), conv(5, 3, activation="tanh"), Route((0, 1)), conv(3, 3)],
        ),
        "route_three": ((2, 3, 5, 4), [conv(2), conv(3, 3), conv(4, 3), Route((-1, -3, -2))]),
        "route_grouped": ((2, 3, 5, 6), [conv(6, 3), Route((-1,), groups=2, group=1), conv(4, 3)]),
        "route_grouped_several": (
            (2, 3, 4, 5),
            [conv(6, 3), conv(4, 3), Route((-1, 0), groups=2, group=1), conv(3)],
        ),
        "upsample_2": ((2, 3, 4, 5), [conv(4, 3), Upsample(2), conv(3, 3)]),
        "upsample_3": ((2, 4, 3, 5), [Upsample(3)]),
        "upsample_scale": ((2, 4, 3, 5), [Upsample(2, scale=0.25)]),
        "reorg_2": ((2, 8, 4, 6), [Reorg(2)]),
        "reorg_2_few_channels": ((2, 4, 6, 4), [conv(4, 3), Reorg(2), conv(5, 3)]),
        "reorg_3": ((1, 9, 6, 9), [Reorg(3)]),
        "reorg_reverse": ((2, 8, 3, 4), [Reorg(2, reverse=True)]),
        "space_to_depth_2": ((2, 3, 4, 6), [conv(4, 3), SpaceToDepth(2), conv(5, 3)]),
        "space_to_depth_3": ((2, 2, 6, 9), [SpaceToDepth(3)]),
    }


def lenet():
    layers = [
        conv(6, 5, activation="relu"),
        MaxPool(2, 2),
        conv(12, 5, padding=0, activation="relu"),
        MaxPool(2, 2),
        Connected(24, activation="relu"),
        PassThrough("dropout", {"probability": 0.5}),
        Connected(10),
        Softmax(),
        PassThrough("cost", {"type": "sse"}),
    ]
    return (3, 1, 24, 20), layers


def resnet():
    layers = [conv(6, 3, bn=True, activation="relu")]
    for filters, stride in ((6, 1), (8, 2), (12, 2)):
        layers += [
            conv(filters, 3, stride=stride, bn=True, activation="relu"),
            conv(filters, 3, bn=True),
            Shortcut(-3, "relu"),
        ]
    return (4, 3, 16, 12), layers + [AvgPool(), Connected(10), Softmax()]


def yolo():
    def block(filters, size):
        return conv(filters, size, bn=True, activation="leaky")

    layers = [
        block(4, 3),  # 0: 32 x 24
        MaxPool(2, 2),
        block(6, 3),  # 2: 16 x 12
        MaxPool(2, 2),
        block(8, 3),  # 4: 8 x 6
        block(4, 1),
        block(8, 3),  # 6: 8 x 6
        MaxPool(2, 2),
        block(12, 3),  # 8: 4 x 3
        Route((6,)),
        block(4, 1),
        Reorg(2),  # 11: 16 channels of 4 x 3
        Route((4,)),
        block(2, 1),
        SpaceToDepth(2),  # 14: 8 channels of 4 x 3
        Route((-1, -4, 8)),
        block(8, 3),
        Upsample(2),
        Route((-1, 4)),
        block(6, 3),
        conv(7),
    ]
    return (3, 3, 32, 24), layers


def all_cases():
    cases = {"network_lenet": lenet(), "network_resnet": resnet(), "network_yolo": yolo()}
    for group in (convolution_cases, normalisation_cases, pooling_cases, dense_cases, graph_cases):
        cases |= group()
    return cases
