"""Executors: one interface to run a network in real numbers, in integers, or in hardware."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.errors import UsageError
from nnef_hw.frontend.reading import AS_WRITTEN, Reading
from nnef_hw.hardware.devices import find_device
from nnef_hw.ir import Graph, Stage
from nnef_hw.passes import simplify
from nnef_hw.passes.time.stream_time import StreamTime
from nnef_hw.quantize import quantize
from nnef_hw.reference import dequantize_outputs, quantize_inputs, run_fixed, run_float
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.device import open_device
from nnef_hw.run.netlist import mapped_verilog
from nnef_hw.run.rtl import run_rtl

__all__ = [
    "DeviceExecutor",
    "Executor",
    "FixedExecutor",
    "FloatExecutor",
    "NetlistExecutor",
    "RtlExecutor",
    "build_executor",
    "is_build",
    "make_executor",
]

HARDWARE = ("rtl", "netlist", "device")


class Executor(Protocol):
    """Runs a network on batches of real inputs."""

    @property
    def graph(self) -> Graph:
        """The graph whose inputs and outputs the executor has."""

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Return the real outputs [N, ...] of real inputs [N, ...], both by name."""


class FloatExecutor:
    """The real-valued reference."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Compute in float64."""
        return run_float(self.graph, inputs)


class FixedExecutor:
    """The fixed-point reference, quantizing inputs and dequantizing outputs."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Compute in the hardware's integers."""
        return _in_real_numbers(self.graph, inputs, lambda codes: run_fixed(self.graph, codes))


class RtlExecutor:
    """A build's Verilog under Verilator."""

    def __init__(self, build: BuildFolder) -> None:
        self.graph = build.fixed
        self._build = build

    @property
    def verilog(self) -> str:
        """The Verilog that is simulated, without memories beside it."""
        return self._build.verilog

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Simulate every sample, back to back."""

        def simulate(codes: dict[str, NDArray[np.int64]]) -> dict[str, NDArray[np.int64]]:
            verilog, top = self._build.with_memories(self.verilog)
            return run_rtl(verilog, self._build.plan, self.graph, codes, top=top).codes

        return _in_real_numbers(self.graph, inputs, simulate)


class NetlistExecutor(RtlExecutor):
    """The cells of the device that a build's accelerator is mapped to, under Verilator."""

    @property
    def verilog(self) -> str:
        """The Verilog that is simulated, without memories beside it."""
        device = find_device(self._build.plan.device)
        verilog, top = self._build.verilog, self._build.module
        return mapped_verilog(verilog, device, top=top)


class DeviceExecutor:
    """A build on a board, real or simulated."""

    def __init__(self, build: BuildFolder, port: str) -> None:
        self.graph = build.fixed
        self._build = build.path
        self._port = port

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Send every sample over the host link."""
        outputs: dict[str, Array] = {}
        with open_device(self._build, self._port, progress=True) as device:
            outputs.update(device.run(inputs))
        return outputs


def make_executor(
    path: Path,
    on: str,
    *,
    port: str | None = None,
    reading: Reading = AS_WRITTEN,
    stream: StreamTime | None = None,
) -> Executor:
    """Return the executor for a model file or a build's folder.

    Parameters
    ----------
    on
        ``float``, ``fixed``, ``rtl``, ``netlist`` or ``device``.
    port
        Serial port of the device, or ``sim``.
    reading
        How to read a model file.
    stream
        How a model file runs step by step, if it is to.

    Raises
    ------
    UsageError
        If that model cannot be run that way.
    """
    build = BuildFolder.open(path) if is_build(path) else None
    if build is not None and (reading or stream):
        raise UsageError(
            f"{str(path)!r} is a build: its model was read already",
            remedy="leave --dim, --lenient, --inputs, --outputs, --bind, --state, --front and "
            "--stream to nnef-hw build",
        )
    if build is not None:
        return build_executor(build, on, port)
    _check_port(on, port)
    if on in HARDWARE:
        raise UsageError(
            f"{str(path)!r} is not a build, so there is no hardware to run",
            remedy="run nnef-hw build first and give its folder",
        )
    graph = reading.load(path)
    if on == "fixed":
        graph = _quantized(graph, path)
    else:
        _check_real(graph, path)
    if stream is not None:
        graph = stream.of_model(simplify(graph) if graph.stage == Stage.FLOAT else graph)
    return FixedExecutor(graph) if on == "fixed" else FloatExecutor(graph)


def is_build(path: Path) -> bool:
    """Whether a path is a build's folder, not a model."""
    return (path / "manifest.json").is_file()


def build_executor(build: BuildFolder, on: str, port: str | None = None) -> Executor:
    """Return the executor for a build, see :func:`make_executor`.

    Raises
    ------
    UsageError
        If it cannot be run that way.
    """
    _check_port(on, port)
    match on:
        case "rtl":
            return RtlExecutor(build)
        case "netlist":
            return NetlistExecutor(build)
        case "device":
            assert port is not None
            return DeviceExecutor(build, port)
        case "fixed":
            return FixedExecutor(build.fixed)
        case "float":
            graph = build.canonical or build.fixed
            _check_real(graph, build.path)
            return FloatExecutor(graph)
        case _:
            names = ", ".join(("float", "fixed", *HARDWARE))
            raise UsageError(f"nothing runs on {on!r}", remedy=f"choose one of {names}")


def _check_port(on: str, port: str | None) -> None:
    if (port is None) == (on == "device"):
        raise UsageError(
            "a device needs --port" if port is None else f"--port {port} is for --on device",
            remedy="name the board's serial port, or 'sim' for the simulated board",
        )


def _check_real(graph: Graph, path: Path) -> None:
    if graph.stage == Stage.FIXED:
        raise UsageError(
            f"{str(path)!r} holds only a quantized model", remedy="run it with --on fixed"
        )


def _quantized(graph: Graph, path: Path) -> Graph:
    """Return the fixed graph of a model that its author, or a command of ours, quantized."""
    if graph.stage == Stage.FIXED:
        return graph
    if all(tensor.quant is None for tensor in graph.tensors.values()):
        raise UsageError(
            f"model {str(path)!r} is not quantized", remedy="run nnef-hw quantize first"
        )
    return quantize(graph if graph.stage == Stage.CANONICAL else simplify(graph), None)


def _in_real_numbers(graph: Graph, inputs: Mapping[str, Array], run: Any) -> dict[str, Array]:
    outputs: dict[str, Array] = {}
    outputs.update(dequantize_outputs(graph, run(quantize_inputs(graph, inputs))))
    return outputs
