"""A finished build: Verilog, bitstream, models and report in one folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Literal

from rich.console import RenderableType
from rich.text import Text

from nnef_hw.api.show import Shown, framed, printed
from nnef_hw.arithmetic.arrays import Array
from nnef_hw.quantize.judgement.warnings import QualityWarning
from nnef_hw.report.model.checks import BuildComparison, Simulation
from nnef_hw.report.model.report import Report
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.device import Device, open_device
from nnef_hw.run.executors import build_executor
from nnef_hw.run.generate import open_loop
from nnef_hw.run.simulate import compare, require_exact, simulate
from nnef_hw.samples.samples import Given, take_samples

__all__ = ["Build", "open_build"]


class Build(Shown):
    """A finished build; :meth:`nnef_hw.api.Plan.build` or :func:`open_build` makes it.

    Parameters
    ----------
    path
        Its folder.
    report
        Contents of its ``report.json``.
    """

    def __init__(self, path: Path, report: Report) -> None:
        self.path, self.report = path, report

    def __fspath__(self) -> str:
        # so that it can be given where its folder can
        return str(self.path)

    @cached_property
    def _folder(self) -> BuildFolder:
        return BuildFolder.open(self.path)

    @property
    def verilog(self) -> str:
        """The accelerator, one text."""
        return self._folder.verilog

    @property
    def warnings(self) -> list[QualityWarning]:
        """Why to doubt its network: samples, or what quantization loses, and what helps."""
        return list(self.report.warnings)

    @property
    def bitstream(self) -> Path | None:
        """File that configures the board; None if none was made."""
        found = self.report.bitstream
        return None if found is None else Path(found)

    def run(
        self,
        inputs: Given,
        *,
        on: Literal["float", "fixed", "rtl", "netlist", "device"] = "rtl",
        port: str | None = None,
    ) -> dict[str, Array]:
        """Run the build on real inputs.

        Parameters
        ----------
        inputs
            As :meth:`nnef_hw.api.Model.run` takes them.
        on
            Real numbers, the fixed-point model, the Verilog in simulation, the cells that it is
            mapped to, or a board.
        port
            Serial port of the board, or ``sim`` for one that is simulated down to its pins.

        Returns
        -------
        dict
            Outputs [N, ...] by name.

        Raises
        ------
        SampleError
            If an input is missing, or its shape or its numbers do not fit.
        UsageError
            If there is no such model or port.
        LinkError
            If the board does not answer.
        """
        executor = build_executor(self._folder, on, port)
        return executor.run(take_samples(inputs, executor.graph).inputs)

    def simulate(
        self, samples: Given | None = None, *, limit: int | None = None, stall: float = 0.0
    ) -> Simulation:
        """Run samples, or random frames, through the Verilog, and compare with the fixed model.

        Parameters
        ----------
        limit
            Take the first samples only.
        stall
            Probability per cycle that source and sink pause.

        Raises
        ------
        CheckError
            If results, or cycles of a run without stalls, differ: a defect of ours.
        """
        found = simulate(self._folder, samples, limit=limit, stall=stall)
        require_exact(found)
        return found

    def compare(self, samples: Given) -> BuildComparison:
        """Compare float, fixed and RTL: exactness, accuracy, noise of every layer."""
        return compare(self._folder, samples)

    def generate(
        self,
        prompt: Sequence[int],
        tokens: int,
        *,
        temperature: float = 0.0,
        seed: int = 0,
        stop: int | None = None,
        port: str | None = None,
    ) -> Iterator[int]:
        """Yield the tokens with which a language model continues a prompt, as they come.

        Parameters
        ----------
        prompt, tokens, temperature, seed, stop
            As :meth:`.Device.generate` takes them.
        port
            Serial port of the board, or ``sim``; without one the fixed model computes.

        Raises
        ------
        UsageError
            If the network is no step of a language model, or the prompt does not fit it.
        LinkError
            If the board does not answer.
        """
        with open_loop(self._folder, port, temperature=temperature, seed=seed) as loop:
            yield from loop.generate(prompt, tokens, stop)

    def open_device(self, port: str) -> AbstractContextManager[Device]:
        """Open the board that runs it; ``sim`` for one that is simulated down to its pins."""
        return open_device(self.path, port)

    def _parts(self) -> Iterator[RenderableType]:
        yield printed(self.report)
        yield from map(Text, map(str, self.warnings))

    def _repr_html_(self) -> str:
        return framed((self.path / "report.html").read_text(encoding="utf-8"))


def open_build(path: PathLike[str] | str) -> Build:
    """Open the folder of a finished build.

    Raises
    ------
    UsageError
        If it is not one.
    """
    folder = BuildFolder.open(Path(path))
    return Build(folder.path, folder.report)
