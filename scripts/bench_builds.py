"""The builds of ``make bench``: which networks, for which boards, and with which options."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple

from bench_engine import fixed_network

from nnef_hw.architectures import AUTO
from nnef_hw.flow.options import BuildOptions
from nnef_hw.quantize import Scheme

__all__ = ["FULL", "Build", "SETS"]

ROOT = Path(__file__).resolve().parent.parent
ZOO = Path(os.environ.get("NNEF_HW_ZOO", ROOT.parent / "shared" / "zoo"))
DIGITS = ROOT / "examples" / "digits_cnn"


class Build(NamedTuple):
    """A network, and how it is built; see :class:`.BuildOptions`."""

    network: str
    board: str
    clock_mhz: float | None = None
    frames: int | Literal["all"] = "all"
    target_fps: float | None = None
    weight_bits: int | None = None
    arch: str = AUTO
    batch: int = 1
    seeds: int = 1
    fastest: bool = False

    @property
    def label(self) -> str:
        """Its network, with the options that other builds of it do not have."""
        rate = f" at {self.target_fps:g}/s" if self.target_fps else ""
        width = f" w{self.weight_bits}" if self.weight_bits else ""
        return self.network + width + rate + (" fastest" if self.fastest else "")

    def options(self, out: Path) -> BuildOptions:
        """Return what is built below a folder."""
        model, samples = ZOO / self.network / "model.nnef.tgz", ZOO / self.network / "samples.npz"
        if self.network == "digits_cnn":
            model, samples = DIGITS / "digits_cnn.nnef.tgz", DIGITS / "samples.npz"
        # of random weights: quantized already, and fed with random codes
        is_random = self.network == "mobilenetv2"
        width = {} if self.weight_bits is None else {"weight_bits": self.weight_bits}
        return BuildOptions(
            model=fixed_network(self.network, out)[0] if is_random else model,
            calibrate=None if is_random else samples,
            board=self.board, clock_mhz=self.clock_mhz, frames=self.frames,
            target_fps=self.target_fps, scheme=Scheme(**width), arch=self.arch, batch=self.batch,
            seeds=self.seeds, fastest=self.fastest,
            out=out / f"{self.label}-{self.board}-{self.arch}".replace(" ", "-").replace("/", "-"),
        )  # fmt: skip


def _engines() -> Iterator[Build]:
    for name, frames in (
        ("mlperf_ic_resnet8", 100), ("mlperf_kws_dscnn", 200), ("mlperf_sww_ds1d", 45),
        ("mlperf_vww_mobilenetv1", 20), ("mlperf_ad_fcae", 64), ("mlperf_ic_resnet8_wide", 20),
    ):  # fmt: skip
        batch = 16 if name == "mlperf_ad_fcae" else 1
        yield Build(name, "icebreaker", 36.0, frames, arch="engine", batch=batch)
    yield Build("mlperf_ic_resnet8_wide", "ulx3s_85f", 70.0, 20, arch="engine", batch=2)
    yield Build(
        "mobilenetv2", "ulx3s_85f", 72.9167, 10, 600.0, arch="engine", batch=10, seeds=2
    )  # fmt: skip


QUICK = [
    *(
        Build(name, "icebreaker")
        for name in (
            "digits_cnn", "tflm_hello_world", "digits_mlp", "mnist_tiny_cnn",
            "jvowels_conv1d_tanh", "mnist_lenet5",
        )
    ),
    Build("digits_cnn", "icebreaker", fastest=True),
    Build("mnist_tiny_cnn", "icebreaker", fastest=True),
]  # fmt: skip
FULL = [*QUICK, Build("mnist_lenet5", "ulx3s_85f")]
LARGE = [
    Build("mlperf_ic_resnet8", "ulx3s_85f", 90.0),
    Build("mlperf_ic_resnet8", "ulx3s_85f", 90.0, 100, 2441.0),
    Build("mlperf_ic_resnet8", "ulx3s_85f", 91.6667, 100, 4883.0),
    Build("mlperf_ic_resnet8", "ulx3s_85f", 91.6667, 100, 4883.0, weight_bits=4),
    Build("mlperf_kws_dscnn", "ulx3s_85f", 90.0),
    Build("mlperf_kws_dscnn", "ulx3s_85f", 90.0, 100, 15800.0),
    Build("mlperf_sww_ds1d", "ulx3s_85f", 90.0),
    Build("mlperf_vww_mobilenetv1", "ulx3s_85f", 91.0714, 100, 4880.0),
    Build("mlperf_ic_resnet8", "ulx3s_45f", 90.625, 100, 2441.0),
    Build("mlperf_ic_resnet8", "ulx3s_25f", 90.0, 20),
]
TANG = [
    Build(name, board)
    for board, name in product(
        ("tang_nano_20k", "tang_nano_9k"),
        (
            "digits_cnn", "mnist_tiny_cnn", "digits_mlp", "tflm_hello_world",
            "jvowels_conv1d_tanh", "mnist_lenet5", "mlperf_sww_ds1d", "mlperf_kws_dscnn",
        ),
    )
]  # fmt: skip
SETS: dict[str, tuple[str, Sequence[Build]]] = {
    "quick": ("without the ECP5 builds", QUICK),
    "large": ("only MLPerf Tiny's on an ECP5: three hours", LARGE),
    "tang": ("only the Tang Nanos: two hours", TANG),
    "engine": ("only the shared engine's, two of an ECP5: an hour", list(_engines())),
}
"""Builds by the option that asks for them, with what that says of itself."""
