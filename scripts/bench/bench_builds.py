"""The builds of ``make bench``: which networks, for which boards, and with which options."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from bench_engine import fixed_network
from measured import ROOT, Key

from nnef_hw.architectures import AUTO
from nnef_hw.flow.options import BuildOptions
from nnef_hw.frontend import load
from nnef_hw.frontend.reading import Reading
from nnef_hw.ir.batch import sample_extents
from nnef_hw.quantize import Scheme

__all__ = ["SETS", "Build"]

ZOO = Path(os.environ.get("NNEF_HW_ZOO", ROOT.parent / "shared" / "zoo"))
SHARED = Path(os.environ.get("NNEF_HW_SHARED", ROOT.parent / "shared"))
EXAMPLES = ROOT / "examples"
DEEPLOY = SHARED / "attention" / "deeploy"
MODELS = {
    "digits_cnn": EXAMPLES / "digits_cnn" / "digits_cnn.nnef.tgz",
    "digits_vit": EXAMPLES / "digits_vit" / "digits_vit.onnx",
    "encoder_16x32": ROOT / "tests" / "cases" / "attention" / "encoder_16x32.onnx",
    "EEGFormer": DEEPLOY / "EEGFormer" / "network.onnx",
    "CCT_1_16_16_8": DEEPLOY / "CCT_1_16_16_8" / "network.onnx",
    "CCT_2_32_32_128": DEEPLOY / "CCT_2_32_32_128_Opset20" / "network.onnx",
    "KWT-1": SHARED / "attention" / "kwt1" / "kwt1.tflite",
    "names_gpt": EXAMPLES / "names_gpt" / "names_gpt.onnx",
}
"""Networks that are not in the zoo; those without samples beside them are fed with noise."""
INPUTS = {"KWT-1": ("speech_features_normalizer_truediv",)}
"""Where networks begin whose front ends are left to the host."""
STATES = {"names_gpt": {"keys": "keys_next", "values": "values_next"}}
"""Inputs that take over outputs for the next inference, by network."""
NOISE_SAMPLES = 64


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
    stream: Literal["time"] | None = None
    token_loop: bool = False

    @property
    def label(self) -> str:
        """Its network, with the options that other builds of it do not have."""
        rate = f" at {self.target_fps:g}/s" if self.target_fps else ""
        width = f" w{self.weight_bits}" if self.weight_bits else ""
        return self.network + width + rate

    @property
    def inputs(self) -> tuple[str, ...]:
        """Values at which its network begins; none of one that is built whole."""
        return INPUTS.get(self.network, ())

    @property
    def states(self) -> dict[str, str]:
        """Inputs that take over outputs for the next inference."""
        return STATES.get(self.network, {})

    @property
    def key(self) -> Key:
        """Its network and board, and what the command line says besides."""
        said = {
            "--arch": None if self.arch == AUTO else self.arch,
            "--freq": self.clock_mhz,
            "--target-fps": self.target_fps,
            "--weight-bits": self.weight_bits,
            "--stream": self.stream,
            "--batch": None if self.batch == 1 else self.batch,
            "--seeds": None if self.seeds == 1 else self.seeds,
            "--inputs": ",".join(self.inputs) or None,
            "--state": " --state ".join(f"{a}={b}" for a, b in self.states.items()) or None,
            "--token-loop": "" if self.token_loop else None,
        }
        texts = (f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}".rstrip()
                 for name, value in said.items() if value is not None)  # fmt: skip
        return self.network, self.board, " ".join(texts)

    def options(self, out: Path) -> BuildOptions:
        """Return what is built below a folder."""
        model = MODELS.get(self.network, ZOO / self.network / "model.nnef.tgz")
        samples = model.with_name("samples.npz")
        if model.exists() and not samples.exists():
            samples = _noise(model, out / f"{self.network}-noise.npz", self.inputs)
        # of random weights: quantized already, and fed with random codes
        is_random = self.network == "mobilenetv2"
        width = {} if self.weight_bits is None else {"weight_bits": self.weight_bits}
        return BuildOptions(
            model=fixed_network(self.network, out)[0] if is_random else model,
            calibrate=None if is_random else samples,
            board=self.board, clock_mhz=self.clock_mhz, frames=self.frames,
            target_fps=self.target_fps, scheme=Scheme(**width), arch=self.arch, batch=self.batch,
            seeds=self.seeds, reading=Reading(inputs=self.inputs, states=self.states),
            token_loop=self.token_loop,
            out=out / f"{self.label}-{self.board}-{self.arch}".replace(" ", "-").replace("/", "-"),
        )  # fmt: skip


def _noise(model: Path, path: Path, inputs: Sequence[str] = ()) -> Path:
    """Write noise of mean 0 and variance 1 for a model, unless the file is there; return it."""
    if not path.exists():
        graph, rng = load(model, inputs=inputs), np.random.default_rng(0)
        path.parent.mkdir(parents=True, exist_ok=True)
        shapes = {name: sample_extents(graph.tensor(name).shape) for name in graph.inputs}
        inputs = {
            name: rng.normal(size=(NOISE_SAMPLES, *shape)).astype(np.float32)
            for name, shape in shapes.items()
        }
        np.savez(path, **inputs)
    return path


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
]  # fmt: skip
FULL = [*QUICK, Build("mnist_lenet5", "ulx3s_85f")]
LARGE = [
    *(
        Build(name, "ulx3s_85f", frames=100)
        for name in (
            "mlperf_kws_dscnn",
            "mlperf_ic_resnet8",
            "mlperf_vww_mobilenetv1",
            "mlperf_sww_ds1d",
        )
    ),
    Build("mlperf_ic_resnet8", "ulx3s_85f", frames=100, weight_bits=4),
    Build("mlperf_ic_resnet8", "ulx3s_45f", frames=100),
    Build("mlperf_ic_resnet8", "ulx3s_25f", frames=20),
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
GW5A = [
    *(
        Build(name, "tang_primer_25k")
        for name in (
            "digits_cnn", "mnist_tiny_cnn", "mnist_lenet5", "mlperf_sww_ds1d", "mlperf_kws_dscnn",
        )
    ),
    Build("digits_cnn", "tang_mega_138k", target_fps=20000.0),
]  # fmt: skip
ATTENTION = [
    Build("digits_vit", "tang_nano_20k", frames=100),
    Build("digits_vit", "ulx3s_85f", frames=100),
    Build("encoder_16x32", "ulx3s_85f"),
    Build("EEGFormer", "tang_nano_20k"),
    Build("CCT_1_16_16_8", "icebreaker"),
    Build("CCT_2_32_32_128", "ulx3s_85f", 90.0, frames=3),
    Build("digits_vit", "tang_nano_20k", frames=100, arch="engine"),
    Build("encoder_16x32", "ulx3s_85f", frames=10, arch="engine"),
    Build("EEGFormer", "icebreaker", frames=10, arch="engine"),
    Build("KWT-1", "ulx3s_85f", frames=2, arch="engine"),
    Build("names_gpt", "tang_nano_20k", frames=64, arch="engine", token_loop=True),
]
SETS: dict[str, tuple[str, Sequence[Build]]] = {
    "full": ("those that are built without an option", FULL),
    "attention": ("only networks with attention", ATTENTION),
    "quick": ("without the ECP5 builds", QUICK),
    "large": ("only MLPerf Tiny's on an ECP5: three hours", LARGE),
    "tang": ("only the Tang Nanos: two hours", TANG),
    "gw5a": ("only the Tang Primer 25K and one of a Tang Mega 138K", GW5A),
    "engine": ("only the shared engine's, two of an ECP5: an hour", list(_engines())),
}
"""Builds by the option that asks for them, with what that says of itself."""
