"""Reports as builds make them."""

import copy

import pytest


def _layer(name, op, kind, images, kernel=None, folding=(0, 0), in_dsp=0, **numbers):
    rows, lanes = folding
    layer = {
        "name": name,
        "op": op,
        "kind": kind,
        "location": None,
        "input_image": list(images[0]),
        "output_image": list(images[1]),
        "kernel": list(kernel) if kernel else None,
        "rows": rows,
        "lanes": lanes,
        "multipliers": rows * lanes,
        "in_dsp": in_dsp,
        "utilization": None,
    }
    unknown = dict.fromkeys(("parameters", "macs", "weight_bytes", "line_buffer_bytes", "bram"), 0)
    return {**layer, **unknown, "lut": 60, "cycles": 0, **numbers}


def _tiny():
    interval = 30030
    layers = [
        _layer(
            "conv1", "conv", "conv", ((28, 28, 1), (28, 28, 8)), (3, 3), (2, 1), 2,
            parameters=80, macs=56448, cycles=28224, weight_bytes=72, line_buffer_bytes=112,
            bram=3, lut=310, location="graph.nnef:9:5", utilization=56448 / (2 * interval),
        ),
        _layer(
            "pool1", "max_pool", "max_pool", ((28, 28, 8), (14, 14, 8)), (2, 2),
            cycles=6272, line_buffer_bytes=448, bram=2, lut=140, location="graph.nnef:11:5",
        ),
        _layer(
            "conv2", "conv", "conv", ((14, 14, 8), (14, 14, 16)), (3, 3), (4, 2), 7,
            parameters=1168, macs=225792, cycles=30030, weight_bytes=1152, line_buffer_bytes=448,
            bram=6, lut=720, location="graph.nnef:12:5", utilization=225792 / (8 * interval),
        ),
        _layer(
            "pool2", "max_pool", "max_pool", ((14, 14, 16), (7, 7, 16)), (2, 2),
            cycles=3136, line_buffer_bytes=448, bram=2, lut=150, location="graph.nnef:14:5",
        ),
        _layer(
            "conv3", "conv", "conv", ((7, 7, 16), (7, 7, 32)), (3, 3), (4, 2), 7,
            parameters=4640, macs=225792, cycles=28224, weight_bytes=4608, line_buffer_bytes=448,
            bram=11, lut=760, location="graph.nnef:15:5", utilization=225792 / (8 * interval),
        ),
        _layer(
            "pool3", "max_pool", "max_pool", ((7, 7, 32), (3, 3, 32)), (2, 2),
            cycles=1568, line_buffer_bytes=448, bram=2, lut=150, location="graph.nnef:17:5",
        ),
        _layer(
            "fc", "linear", "conv", ((1, 1, 288), (1, 1, 10)), None, (1, 1), 0,
            parameters=2890, macs=2880, cycles=2880, weight_bytes=2880, line_buffer_bytes=288,
            bram=3, lut=290, location="graph.nnef:19:5", utilization=2880 / interval,
        ),
    ]  # fmt: skip
    return {
        "model": "mnist_tiny_cnn",
        "board": "icebreaker",
        "device": "up5k",
        "arch": "streaming",
        "macs": 510912,
        "multipliers": 19,
        "cycles_per_inference": interval,
        "latency_cycles": 41377,
        "mac_utilization": 510912 / (19 * interval),
        "clock_mhz": 24.0,
        "fmax_mhz": 27.31,
        "inferences_per_second": 24e6 / interval,
        "link_inferences_per_second": 14.62,
        "resources": {
            "lut": {"used": 4412, "available": 5280, "estimated": 4190},
            "ff": {"used": 3871, "available": 5280, "estimated": 3700},
            "dsp": {"used": 8, "available": 8, "estimated": 8},
            "bram": {"used": 30, "available": 30, "estimated": 29},
            "spram": {"used": 1, "available": 4, "estimated": 1},
        },
        "bitstream": "build/mnist_tiny_cnn/board/top.bin",
        "timing_met": True,
        "seconds": {
            "load": 0.05, "quantize": 1.31, "schedule": 0.874, "emit": 2.66, "simulate": 21.4,
            "synthesize": 38.2, "place": 71.5, "pack": 1.9,
        },
        "layers": layers,
        "simulation": {
            "frames": 1000,
            "bit_exact": True,
            "mismatches": 0,
            "cycles_per_inference": 30030,
            "latency_cycles": 41377,
            "predicted_cycles_per_inference": 30030,
            "predicted_latency_cycles": 41377,
            "cycles_per_second": 2183400.5,
        },
        "accuracy": {
            "samples": 800,
            "calibration_samples": 200,
            "float": 0.98875,
            "fixed": 0.98625,
            "rtl": 0.98625,
            "metric": "accuracy",
        },
        "commands": [
            "nnef-hw build mnist_tiny_cnn.nnef.tgz --board icebreaker --calibrate mnist.npz",
            "nnef-hw sim build/mnist_tiny_cnn --samples mnist.npz",
            "nnef-hw flash build/mnist_tiny_cnn",
        ],
    }  # fmt: skip


def _planned():
    """Return what is known before anything ran: no simulation, synthesis or place and route."""
    report = _tiny()
    for row in report["resources"].values():
        row["used"] = None
    unknown = ("fmax_mhz", "timing_met", "bitstream", "simulation", "accuracy")
    return report | dict.fromkeys(unknown)


def _deep():
    """Return thirty layers on an ECP5, with names as exporters make them."""
    report = _tiny()
    conv, pool, fc = report["layers"][2], report["layers"][3], report["layers"][6]
    layers = []
    for i in range(27):
        layer = copy.deepcopy(pool if i % 6 == 5 else conv)
        layer["name"] = f"model/functional_1/block_{i}/separable_conv2d_{i}/BiasAdd_requantized"
        layer["cycles"] = 36864 - 700 * (i % 5)
        layers.append(layer)
    layers[0]["input_image"] = layers[0]["output_image"] = [1024, 1024, 512]
    tail = _layer("activation", "sigmoid", "table", ((1, 1, 10), (1, 1, 10)), cycles=10, bram=1)
    softmax = _layer("softmax", "softmax", "softmax", ((1, 1, 10), (1, 1, 10)), cycles=240)
    layers += [fc, tail, softmax]
    resources = {
        "lut": {"used": 91204, "available": 83640, "estimated": 70190},
        "ff": {"used": 43871, "available": 83640, "estimated": None},
        "dsp": {"used": 156, "available": 156, "estimated": 156},
        "bram": {"used": 101, "available": 208, "estimated": 104},
        "spram": {"used": 0, "available": 0, "estimated": 0},
    }
    return report | {
        "model": "resnet8",
        "board": "ulx3s_85f",
        "device": "ecp5-85k",
        "layers": layers,
        "resources": resources,
        "cycles_per_inference": 36864,
        "timing_met": False,
        "fmax_mhz": 71.3,
        "clock_mhz": 100.0,
        "multipliers": 177,
    }


def _poolless_single():
    """Return one layer and no multiplier anywhere."""
    pool = _layer("pool", "avg_pool", "avg_pool", ((8, 8, 1), (4, 4, 1)), (2, 2), cycles=64)
    single = {
        "macs": 0, "multipliers": 0, "mac_utilization": None, "layers": [pool],
        "cycles_per_inference": 64, "latency_cycles": 30,
    }  # fmt: skip
    return _planned() | single


@pytest.fixture
def tiny():
    """Give a finished build."""
    return _tiny()


@pytest.fixture
def planned():
    return _planned()


@pytest.fixture
def deep():
    return _deep()


@pytest.fixture
def single():
    return _poolless_single()


@pytest.fixture(params=["tiny", "planned", "deep", "single"])
def any_report(request):
    return request.getfixturevalue(request.param)
