"""A build with the link mlperf: scored as MLPerf Tiny's runner does, or served to that."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from nnef_hw.boards.interfaces import Mlperf, link_of
from nnef_hw.errors import CheckError, UsageError
from nnef_hw.host.manifest import read_manifest
from nnef_hw.host.mlperf import RunnerHost
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.report.model.checks import RunnerScore
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.simulated_board import simulated_board
from nnef_hw.samples.samples import load_samples

__all__ = ["score", "serve"]

_PATIENCE = 30.0
_MICROSECONDS = 1_000_000


def score(
    build: Path, port: str, samples: Path, *, limit: int | None = None, runs: int = 1
) -> RunnerScore:
    """Load samples one by one, run each, and compare what is printed with the fixed model.

    Parameters
    ----------
    build
        The build.
    port
        Serial port of its board; ``sim`` starts the simulated board.
    samples
        Sample file.
    limit
        Samples at most.
    runs
        Inferences of each sample.

    Raises
    ------
    UsageError
        If there is no such build or port, or the build has another link.
    SampleError
        If the samples do not fit the network, or are none that a file of the benchmark can hold.
    LinkError
        If the board does not answer, or with an error.
    CheckError
        If the board prints another result than the fixed model gives.
    """
    link = _link(build)
    fixed = BuildFolder.open(build).fixed
    subject, (source, sink) = link.subject, link.borders
    given = load_samples(samples, fixed)[:limit]
    files = [subject.file(source, sample) for sample in given.inputs[source.name]]
    codes = run_fixed(fixed, quantize_inputs(fixed, given.inputs))[sink.name]
    expected = [
        subject.results(source, sink, file, row.reshape(-1))
        for file, row in zip(files, codes, strict=True)
    ]
    found, seconds = [], []
    with contextlib.ExitStack() as stack:
        patience = _PATIENCE
        if port == "sim":
            board = stack.enter_context(simulated_board(build))
            transport, patience = stack.enter_context(board.open()), patience * board.slowness
        else:
            transport = stack.enter_context(link.open(port, build))
        host = RunnerHost(transport, patience)
        host.greet()
        model = host.model()
        if model != subject.name:
            raise CheckError(
                f"the board answers for {model}, and the build is for {subject.name}",
                remedy="flash the build",
            )
        for number, (file, wanted) in enumerate(zip(files, expected, strict=True)):
            host.load(file)
            result = host.infer(runs)
            if result.scores != wanted:
                raise CheckError(
                    f"sample {number}: the board prints {result.scores}, and the fixed-point model "
                    f"gives {wanted}",
                    remedy="flash the build again; if that does not help please report this",
                )
            found.append(result.scores)
            seconds.append(max(result.microseconds, 1) / _MICROSECONDS)
    accuracy = None
    if given.labels is not None and len(found[0]) > 1:
        accuracy = float(np.mean(np.argmax(found, axis=1) == np.ravel(given.labels)))
    return RunnerScore(
        benchmark=subject.name, simulated=port == "sim", samples=len(found), accuracy=accuracy,
        inferences_per_second=runs / float(np.median(seconds)),
    )  # fmt: skip


def serve(build: Path, announce: Callable[[str], None]) -> None:
    """Simulate a build's board behind a pseudo-terminal until it is interrupted.

    ``announce`` is told the terminal's name.

    Raises
    ------
    UsageError
        If there is no such build, or it has another link.
    ToolError
        If this system has no pseudo-terminals, or Verilator is missing.
    """
    _link(build)
    with simulated_board(build) as board:
        announce(board.port)
        with contextlib.suppress(KeyboardInterrupt):
            while board.is_running:
                time.sleep(0.1)


def _link(build: Path) -> Mlperf:
    link = link_of(read_manifest(build).link)
    if not isinstance(link, Mlperf):
        raise UsageError(
            f"{str(build)!r} has the link {link.name!r}", remedy="build it with --link mlperf"
        )
    return link
