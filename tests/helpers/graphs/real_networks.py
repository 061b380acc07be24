"""How far networks of other people come: what is recorded of each, and the survey that finds it.

``tests/cases/real_networks.json`` names each file's source, its hash, the options it is read with
and its verdict. ``scripts/record/real_networks.py`` records them.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from real_numbers import run_in_double, with_real_filters

from nnef_hw.cli import main
from nnef_hw.frontend.tflite.file.flatbuffer import read_model
from nnef_hw.frontend.tflite.file.model import TfliteModel
from nnef_hw.frontend.tflite.lowering.integer_inputs import bind_shapes
from nnef_hw.ir.batch import sample_extents
from nnef_hw.reference import dequantize_outputs, quantize_inputs, run_fixed, run_float
from nnef_hw.run.artifacts import BuildFolder

__all__ = [
    "BOARDS",
    "RECORD",
    "STAGES",
    "Bitstream",
    "Network",
    "Verdict",
    "known_networks",
    "survey",
]

RECORD = Path(__file__).parents[2] / "cases" / "real_networks.json"
STAGES = ("refused", "read", "equal", "buildable", "built")
"""How far a network comes, from the least to the most.

Not read; read, but other results than its own runtime's, or none to compare with; equal; ``check``
finds nothing in the way; built for a board, simulated bit-exact in as many cycles as predicted.
"""
BOARDS = ("icebreaker", "tang_nano_20k", "ulx3s_85f")
"""From the smallest to the largest: a network is built for the first that it fits."""
TOLERANCE, RESOLUTION = 1e-4, 1e-6
"""Largest error of a result, as a share of the largest one of its tensor; smaller errors than the
second are those of a function that 32-bit numbers of about 1 went through on the way."""
SAMPLES, FEW_SAMPLES = 250, 10
ELEMENTS = 1 << 18
"""About so many numbers are in all samples, of which there may be more or fewer."""
FRAMES = "3"


@dataclass(frozen=True)
class Verdict:
    """How far a network came.

    Parameters
    ----------
    stage
        One of STAGES.
    reason
        Why not further; the file's name is left out.
    reference
        Whether the network's own runtime could compute it, to compare with.
    board, interval, latency, rate
        Where it was built; cycles, and inferences per second at the board's clock.
    sqnr_db
        Signal to noise of the first result, fixed model against the real-valued one, on noise.
    """

    stage: str
    reason: str = ""
    reference: bool = False
    board: str = ""
    interval: int = 0
    latency: int = 0
    rate: float = 0.0
    sqnr_db: float | None = None

    @property
    def rank(self) -> int:
        """Position of the stage."""
        return STAGES.index(self.stage)


@dataclass(frozen=True)
class Bitstream:
    """A bitstream that was made for a network, and what its report says.

    Parameters
    ----------
    options
        Command line options of ``build``, beside those that the network is read with.
    interval
        Cycles per inference.
    clock_mhz, fmax_mhz
        The clock that it runs at, and the one that place and route reached.
    lut, dsp, bram
        What of the device it takes, after place and route.
    """

    board: str
    options: tuple[str, ...]
    interval: int
    clock_mhz: float
    fmax_mhz: float
    rate: float
    lut: int
    dsp: int
    bram: int

    @classmethod
    def of(cls, report: Mapping[str, Any], options: tuple[str, ...]) -> Bitstream:
        """Read a build's report; the simulation must agree with its predictions."""
        _check_simulation(report["simulation"])
        assert report["bitstream"], "the build has no bitstream"
        assert report["timing_met"], "timing is not met"
        used = {name: item["used"] for name, item in report["resources"].items()}
        return cls(
            board=report["board"], options=options, interval=report["cycles_per_inference"],
            clock_mhz=report["clock_mhz"], fmax_mhz=round(report["fmax_mhz"], 1),
            rate=float(f"{report['inferences_per_second']:.4g}"), lut=used["lut"],
            dsp=used["dsp"], bram=used["bram"],
        )  # fmt: skip


@dataclass(frozen=True)
class Network:
    """A model file of a public project.

    Parameters
    ----------
    source, commit, path
        Repository, and where the file lies in it.
    options
        Command line options that it is read with.
    bitstream
        One that was made; None if none was.
    """

    name: str
    source: str
    commit: str
    path: str
    file: str
    sha256: str
    options: tuple[str, ...] = ()
    verdict: Verdict = Verdict("refused")
    bitstream: Bitstream | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Network:
        """Read an entry of the record."""
        fields = {**value, "options": tuple(value["options"])}
        fields["verdict"] = Verdict(**value["verdict"])
        if made := value.get("bitstream"):
            fields["bitstream"] = Bitstream(**{**made, "options": tuple(made["options"])})
        return cls(**fields)

    def to_json(self) -> dict[str, Any]:
        """Return the entry of the record."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    def find(self, folder: Path) -> Path | None:
        """Return the file in a folder; None if it is not there, or another one."""
        path = folder / self.file
        if not path.is_file() or sha256(path.read_bytes()).hexdigest() != self.sha256:
            return None
        return path


def known_networks() -> list[Network]:
    """Return the recorded networks."""
    return [Network.from_json(value) for value in json.loads(RECORD.read_text())]


@dataclass(frozen=True)
class _Answer:
    """Exit status, standard output and errors of a command."""

    status: int
    out: str
    error: str

    def reason(self, path: Path) -> str:
        """Return the first message without the file's place."""
        lines = self.error.strip().splitlines() or ["?"]
        text = lines[0].removeprefix("nnef-hw: ").replace(str(path), path.name)
        return re.sub(r"^\S+: ", "", text)


def _command(*words: object) -> _Answer:
    """Run a command; one that ends as only a defect of ours does is an assertion."""
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        status = main([str(word) for word in words])
    assert status in {0, 2}, error.getvalue()
    return _Answer(status, out.getvalue(), error.getvalue())


def survey(network: Network, path: Path, folder: Path, boards: tuple[str, ...] = BOARDS) -> Verdict:
    """Take a network through ``inspect``, ``run``, ``check``, ``quantize`` and ``build``.

    Parameters
    ----------
    folder
        An empty one, for samples, results and the build.

    Raises
    ------
    AssertionError
        If a command crashes; if the hardware computes something else, or in another time.
    """
    reading = (path, *network.options)
    inspected = _command("inspect", *reading, "--json")
    if inspected.status:
        return Verdict("refused", inspected.reason(path))
    samples = _write_samples(json.loads(inspected.out)["inputs"], path, folder)
    verdict = _compared(reading, samples, folder)
    checked = _command("check", *reading, "--json")
    if problems := json.loads(checked.out)["problems"]:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        reason = problems[0].split("\n")[0].replace(f"{path}: ", "")
        return replace(verdict, reason=verdict.reason or reason + more)
    if verdict.reason:
        return verdict
    verdict = replace(verdict, stage="buildable")
    calibrated = (*reading, "--calibrate", samples)
    quantized = _command("quantize", *calibrated, "-o", folder / "fixed.nnef.tgz")
    if quantized.status:
        return replace(verdict, reason=quantized.reason(path))
    for board in boards:
        built = _command(
            "build", *calibrated, "--board", board, "--no-bitstream", "--frames", FRAMES,
            "--out", folder / "build", "--json",
        )  # fmt: skip
        if not built.status:
            return _built(verdict, json.loads(built.out), folder / "build", samples)
        verdict = replace(verdict, reason=built.reason(path))
    return verdict


def _write_samples(shapes: Mapping[str, list[int]], path: Path, folder: Path) -> Path:
    """Write noise, the same for a network every time."""
    rng = np.random.default_rng(len(path.name))
    volume = sum(math.prod(shape) for shape in shapes.values())
    count = min(max(FEW_SAMPLES, ELEMENTS // max(volume, 1)), SAMPLES)
    arrays = {
        name: rng.standard_normal((count, *sample_extents(tuple(shape)))).astype(np.float32)
        for name, shape in shapes.items()
    }
    target = folder / "samples.npz"
    named = {"inputs": next(iter(arrays.values()))} if len(arrays) == 1 else arrays
    np.savez(target, **named)
    return target


def _compared(reading: tuple[object, ...], samples: Path, folder: Path) -> Verdict:
    """Compare the real-valued network, or the fixed one of a quantized file, with its runtime."""
    path = Path(str(reading[0]))
    few = folder / "few.npz"
    with np.load(samples) as stored:
        arrays = {name: stored[name][:2] for name in stored.files}
    np.savez(few, **arrays)
    runtime = _RUNTIMES[path.suffix](path, reading[1:])
    for stage in runtime.stages:
        results = folder / "results.npz"
        ran = _command("run", *reading, "--on", stage, "--input", few, "--output", results)
        if not ran.status:
            break
    else:
        return Verdict("read", ran.reason(path))
    given = list(arrays.values())
    expected = runtime.run(given)
    if expected is None:
        return Verdict("equal")
    problem = _difference(folder, expected)
    if problem and (exact := runtime.run_exactly(given)) is not None:
        problem = _difference(folder, exact)
    if problem:
        return Verdict("read", problem, True)
    return Verdict("equal", reference=True)


def _difference(folder: Path, expected: list[np.ndarray]) -> str:
    """Say which result is wrong by how much; nothing if none is."""
    with np.load(folder / "results.npz") as found:
        for name, wanted in zip(found.files, expected, strict=True):
            error = np.abs(found[name].reshape(wanted.shape) - wanted).max(initial=0)
            largest = np.abs(wanted).max(initial=0)
            if not error <= max(TOLERANCE * largest, RESOLUTION):
                return f"the result {name!r} is wrong by {error / max(largest, RESOLUTION):.1e}"
    return ""


class _Onnx:
    """onnxruntime; None of files with operators that it does not have."""

    stages = ("float",)

    def __init__(self, path: Path, options: tuple[object, ...]) -> None:
        import onnx

        words = [str(word) for word in options]
        pairs = list(zip(words[::2], words[1::2], strict=True))
        self._bound = dict(value.split("=") for key, value in pairs if key == "--bind")
        cut = [name for key, value in pairs if key == "--outputs" for name in value.split(",")]
        self._model = onnx.load(path)
        for value in (value for key, value in pairs if key == "--dim"):
            place, _, extent = value.partition("=")
            name, _, axis = place.rpartition(".")
            for item in self._model.graph.input:
                if item.name == name:
                    item.type.tensor_type.shape.dim[int(axis)].dim_value = int(extent)
        if cut:
            del self._model.graph.output[:]
            self._model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in cut)

    def run(self, arrays: list[np.ndarray]) -> list[np.ndarray] | None:
        import onnxruntime
        from onnxruntime.capi import onnxruntime_pybind11_state as state

        # of another domain's operators, of a model that is wrong, of types without a kernel
        refusals = (state.Fail, state.InvalidGraph, state.NotImplemented)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 4
        # fused operators on integers round otherwise than the operators themselves
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            session = onnxruntime.InferenceSession(
                self._model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except refusals:
            return None
        return self._computed(arrays, lambda feed: session.run(None, feed))

    def run_exactly(self, arrays: list[np.ndarray]) -> list[np.ndarray] | None:
        """Compute in 64 bits; None if that has no way to."""
        try:
            return self._computed(arrays, lambda feed: run_in_double(self._model, feed))
        except (RuntimeError, NotImplementedError):
            return None

    def _computed(
        self, arrays: list[np.ndarray], compute: Callable[[dict[str, Any]], list[Any]]
    ) -> list[np.ndarray]:
        from onnx import helper

        constants = {item.name for item in self._model.graph.initializer}
        inputs = [item for item in self._model.graph.input if item.name not in constants]
        free = [item.name for item in inputs if item.name not in self._bound]
        rows = []
        for sample in zip(*arrays, strict=True):
            given, feed = dict(zip(free, sample, strict=True)), {}
            for item in inputs:
                kind = item.type.tensor_type
                extents = [max(d.dim_value, 0) for d in kind.shape.dim]
                value = given.get(item.name, np.full(extents, self._bound.get(item.name)))
                shape = _with_batch(extents, value)
                dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
                feed[item.name] = value.reshape(shape).astype(dtype)
            rows.append(compute(feed))
        return [np.stack(column).astype(np.float64) for column in zip(*rows, strict=True)]


def _with_batch(extents: list[int], value: np.ndarray) -> tuple[int, ...]:
    """Return the shape of a sample, in which a batch of 1 may be missing."""
    missing = len(extents) - value.ndim
    return (*[1] * missing, *value.shape)


class _Tflite:
    """TensorFlow Lite's reference kernels, whose integers are those of the fixed model."""

    stages = ("fixed", "float")

    def __init__(self, path: Path, options: tuple[object, ...]) -> None:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        assert not options
        kind = OpResolverType.BUILTIN_REF
        self._runtime: Any = None
        self._make = partial(Interpreter, experimental_op_resolver_type=kind, num_threads=1)
        self._content = path.read_bytes()
        graph = read_model(path).subgraphs[0]
        given = bind_shapes(TfliteModel(str(path), (graph,))).subgraphs[0]
        bound = (given.tensors[index] for index in {*graph.inputs} - {*given.inputs})
        self._shapes = {tensor.name: tensor.data for tensor in bound}
        with contextlib.suppress(ValueError):  # a file that it does not read
            self._runtime = self._make(model_content=self._content)
            self._runtime.allocate_tensors()

    def run_exactly(self, arrays: list[np.ndarray]) -> list[np.ndarray] | None:
        """Compute with real filters: kernels of filters of codes round activations."""
        self._runtime = self._make(model_content=with_real_filters(self._content))
        self._runtime.allocate_tensors()
        return self.run(arrays)

    def run(self, arrays: list[np.ndarray]) -> list[np.ndarray] | None:
        if self._runtime is None:
            return None
        rows = []
        inputs = self._runtime.get_input_details()
        for item in inputs[:]:
            if item["name"] in self._shapes:
                inputs.remove(item)
                shape = np.array(self._shapes[item["name"]], item["dtype"])
                self._runtime.set_tensor(item["index"], shape)
        for sample in zip(*arrays, strict=True):
            for item, value in zip(inputs, sample, strict=True):
                scale, zero_point = item["quantization"]
                if scale:
                    limits = np.iinfo(item["dtype"])
                    steps = np.floor(value.astype(np.float64) / scale + 0.5) + zero_point
                    value = np.clip(steps, limits.min, limits.max)
                self._runtime.set_tensor(
                    item["index"], value.reshape(item["shape"]).astype(item["dtype"])
                )
            self._runtime.invoke()
            rows.append([self._real(item) for item in self._runtime.get_output_details()])
        return [np.stack(column) for column in zip(*rows, strict=True)]

    def _real(self, item: Mapping[str, Any]) -> np.ndarray:
        value = self._runtime.get_tensor(item["index"]).astype(np.float64)
        scale, zero_point = item["quantization"]
        return (value - zero_point) * scale if scale else value


_RUNTIMES = {".onnx": _Onnx, ".tflite": _Tflite}


def _built(verdict: Verdict, report: Mapping[str, Any], build: Path, samples: Path) -> Verdict:
    _check_simulation(report["simulation"])
    return replace(
        verdict,
        stage="built",
        reason="",
        board=report["board"],
        interval=report["cycles_per_inference"],
        latency=report["latency_cycles"],
        rate=float(f"{report['inferences_per_second']:.4g}"),
        sqnr_db=_sqnr(BuildFolder.open(build), samples),
    )


def _check_simulation(simulated: Mapping[str, Any]) -> None:
    assert simulated["bit_exact"]
    for key in ("cycles_per_inference", "latency_cycles"):
        assert simulated[key] == simulated[f"predicted_{key}"], simulated


def _sqnr(build: BuildFolder, path: Path) -> float | None:
    """Return the first result's, in decibels; None if it is exact."""
    from nnef_hw.samples.samples import load_samples

    assert build.canonical is not None
    samples = load_samples(path, build.fixed).split()[1]
    (name, *_) = build.fixed.outputs
    codes = run_fixed(build.fixed, quantize_inputs(build.fixed, samples.inputs))
    found = dequantize_outputs(build.fixed, codes)[name]
    real = run_float(build.canonical, samples.inputs)[name]
    noise, signal = np.square(found - real).sum(), np.square(real).sum()
    if not noise or not signal:
        return None
    return round(float(10 * np.log10(signal / noise)), 1)
