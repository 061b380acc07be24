"""Reports as builds make them."""

import copy

import pytest

from nnef_hw.architecture.timeline import Activity, Timeline
from nnef_hw.report.model.conversion import from_json
from nnef_hw.report.model.report import Report
from nnef_hw.report.pages.html import write_html


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
        "taps": 1,
        "lines": 0,
        "utilization": None,
        "overlap": None,
    }
    unknown = dict.fromkeys(
        (
            "parameters",
            "macs",
            "weight_bytes",
            "line_buffer_bytes",
            "bram",
            "dsp",
            "busy_cycles",
            "waiting_cycles",
        ),
        0,
    )
    return {**layer, **unknown, "lut": 60, "cycles": 0, **numbers}


def _chained(layers):
    """Let every layer read the one before it."""
    tensor = "input"
    for n, layer in enumerate(layers):
        source = {"tensor": tensor, "fifo": 0, "codes": 1}
        tensor = f"t{n}"
        layer |= {"sources": [source], "tensor": tensor, "codes": 1}
    return layers


def _headroom(wanted, **changes):
    nothing = {"limits": [], "changes": [], "lacking": [], "multipliers": 38}
    return {"wanted": wanted, "cycles": wanted, **nothing, **changes}


def _board(name, device, clock, interval, with_twice=()):
    rate = clock * 1e6 / interval if interval else None
    return {
        "board": name,
        "device": device,
        "clock_mhz": clock,
        "cycles_per_inference": interval,
        "inferences_per_second": rate,
        "with_twice": dict(with_twice),
        "floor": 6272 if interval else None,
    }


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
        "batch": 1,
        "period": 1,
        "settling": 0,
        "in_turn": False,
        "other_architectures": [],
        "stream": None,
        "warnings": [],
        "seed": 1,
        "fmax_mhz_by_seed": {"1": 27.31},
        "longest_path": None,
        "placed": None,
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
        "layers": _chained(layers),
        "inputs": ["input"],
        "outputs": [layers[-1]["tensor"]],
        "link": {"lut": 700, "ff": 350, "dsp": 0, "bram": 1, "spram": 0},
        "boards": [
            _board("icebreaker", "up5k", 24.0, 30030, {"lut": 15015, "bram": 28224}),
            _board("fomu_pvt", "up5k", 24.0, 30030, {"lut": 15015, "bram": 28224}),
            _board("tinyfpga_bx", "lp8k", 32.0, None),
            _board("ulx3s_85f", "ecp5-85k", 60.0, 6272),
        ],
        "headroom": _headroom(
            15015,
            changes=[
                {"name": "conv1", "multipliers": 2, "then": 4},
                {"name": "conv2", "multipliers": 8, "then": 16},
            ],
            lacking=[{"resource": "lut", "wanted": 6604, "usable": 5016}],
        ),
        "beat": "code",
        "noise": {},
        "roofs": {
            "dsp_multipliers": 16, "multipliers": 25, "macs_per_multiplier": 1, "input": 651.7,
            "streams": 81.5,
        },
        "simulation": {
            "frames": 1000,
            "frames_given": 1000,
            "bit_exact": True,
            "mismatches": 0,
            "cycles_per_inference": 30030,
            "latency_cycles": 41377,
            "predicted_cycles_per_inference": 30030,
            "predicted_latency_cycles": 41377,
            "steady_cycles_per_inference": 30030,
            "stall": 0.0,
            "cycles": 30050000,
            "cycles_per_second": 2183400,
        },
        "accuracy": {
            "samples": 800,
            "calibration_samples": 200,
            "calibrated": False,
            "rtl_samples": 800,
            "rtl_equal": True,
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
        "outputs": [f"t{len(layers) - 1}"],
        "board": "ulx3s_85f",
        "device": "ecp5-85k",
        "layers": _chained(layers),
        "resources": resources,
        "cycles_per_inference": 36864,
        "timing_met": False,
        "fmax_mhz": 71.3,
        "clock_mhz": 100.0,
        "multipliers": 177,
        "headroom": _headroom(
            18432,
            cycles=32768,
            limits=[{"name": layers[0]["name"], "cycles": 32768, "codes": 32768}],
        ),
    }


def _poolless_single():
    """Return one layer and no multiplier anywhere."""
    pool = _layer("pool", "avg_pool", "avg_pool", ((8, 8, 1), (4, 4, 1)), (2, 2), cycles=64)
    single = {
        "macs": 0, "multipliers": 0, "mac_utilization": None, "layers": _chained([pool]),
        "cycles_per_inference": 64, "latency_cycles": 30,
        "boards": [],
        "headroom": _headroom(32, cycles=64, limits=[{"name": "pool", "cycles": 64, "codes": 64}]),
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


def _residual():
    """Return four layers and a sum of the first and the last, which come in a second row."""
    report = _tiny()
    conv = report["layers"][2]
    layers = [copy.deepcopy(conv) | {"name": f"conv{n}"} for n in range(1, 8)]
    add = _layer("sum", "add", "sum", ((14, 14, 16), (14, 14, 16)), cycles=3136)
    _chained([*layers, add])
    layers[1] |= {"kind": "depthwise", "taps": 9, "rows": 1, "lanes": 1, "lines": 4}
    layers[4]["sources"] = [{"tensor": "t2", "fifo": 0, "codes": 3136}]
    add["sources"] = [
        {"tensor": "t6", "fifo": 0, "codes": 3136}, {"tensor": "t0", "fifo": 1146, "codes": 3136},
    ]  # fmt: skip
    return report | {"layers": [*layers, add], "outputs": [add["tensor"]]}


@pytest.fixture
def residual():
    return _residual()


@pytest.fixture
def timeline_of():
    """Return ``timeline_of(report)``: layers that work at the start of the frame, then wait."""

    def timeline_of(report):
        interval = report["cycles_per_inference"]
        step = -(-interval // 8)
        sizes = [min(step, interval - first) for first in range(0, interval, step)]

        def activity(name, cycles):
            busy, remaining = [], cycles
            for size in sizes:
                busy.append(min(size, remaining))
                remaining -= busy[-1]
            waiting = [(size - cycles) // 4 for size, cycles in zip(sizes, busy, strict=True)]
            return Activity(name, tuple(busy), tuple(waiting))

        layers = [activity(x["name"], x["cycles"]) for x in report["layers"]]
        return Timeline(interval, step, (activity("input", 784 % interval),), tuple(layers))

    return timeline_of


@pytest.fixture(params=["tiny", "planned", "deep", "single", "residual"])
def any_report(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def render(tmp_path, timeline_of):
    def page(report):
        write_html(from_json(report, Report), timeline_of(report), tmp_path / "report.html")
        return (tmp_path / "report.html").read_text("utf-8")

    return page
