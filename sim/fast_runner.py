"""Cycle-accurate simulation of a stream accelerator at the speed of compiled code."""

import errno
import os
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nnef_hw.errors import CheckError, ToolError
from nnef_hw.sim.verilator import build_model
from nnef_hw.system.files import output_error, writing
from nnef_hw.system.tools import Tool, run_tool

__all__ = ["FastRunner", "RunResult"]

_RUNNER = (Path(__file__).with_suffix(".cpp"), Path(__file__).with_name("stream_model.h"))
_HARNESS = Path(__file__).with_name("stream_model.cpp")
_HEADER = struct.Struct("<2QdQ")
_FAILURES = {
    1: "no beat moved on any side for {idle} cycles",
    2: "the run did not end within {limit} cycles",
    3: "{sink}.valid fell in cycle {cycle} before the beat was taken",
    4: "{sink}.payload changed in cycle {cycle} while the beat was waiting",
    5: "one more beat than expected came from {sink} in cycle {cycle}",
}


@dataclass(frozen=True, slots=True)
class RunResult:
    """Results of a run; by name where there may be several streams.

    ``in_cycles`` and ``out_cycles`` are the cycles in which the beats moved, counted from the
    first cycle after reset; ``payloads`` has a row of words per output beat if one does not do.
    """

    payloads: np.ndarray | dict[str, np.ndarray]
    in_cycles: np.ndarray | dict[str, np.ndarray]
    out_cycles: np.ndarray | dict[str, np.ndarray]
    cycles: int
    seconds: float

    @property
    def cycles_per_second(self):
        """Speed of the simulation."""
        return self.cycles / self.seconds if self.seconds else float("inf")


class FastRunner:
    """A compiled model of a module with input and output streams.

    Parameters
    ----------
    verilog : str
        Its Verilog, complete.
    top : str
        Name of the module.
    inputs, outputs : Sequence[str]
        Names of its streams; apart from the end of its ports' names no two underscores in a row.
    defines : Sequence[str]
        Verilog macros.
    cache_dir : Path, optional
        Where compiled models are kept; the user's cache by default.
    """

    def __init__(
        self, verilog, top="top", *, inputs=("i",), outputs=("o",), defines=(), cache_dir=None
    ):  # fmt: skip
        self._verilog = verilog
        self._inputs, self._outputs = tuple(inputs), tuple(outputs)
        self._options = {"top": top, "defines": defines, "cache_dir": cache_dir}
        self._models = {}
        ports = self._model("").ports
        self._widths = {
            name: ports[f"{name}__payload"].width for name in (*self._inputs, *self._outputs)
        }

    def run(self, beats, *, expected_beats=None, frames=None, **options):
        """Feed the only input and collect the only output, see :meth:`run_streams`.

        Parameters
        ----------
        beats : ndarray
            Input payloads as :func:`~nnef_hw.sim.frames.pack_frames` makes them.
        expected_beats, frames : int, optional
            When to stop.

        Returns
        -------
        RunResult
        """
        (source,), (sink,) = self._inputs, self._outputs
        if expected_beats is not None:
            expected_beats = {sink: expected_beats}
        result = self.run_streams({source: beats}, expected_beats, frames=frames, **options)
        return RunResult(
            result.payloads[sink], result.in_cycles[source], result.out_cycles[sink],
            result.cycles, result.seconds,
        )  # fmt: skip

    def run_streams(
        self, beats, expected_beats=None, *, frames=None, stall=0.0, seed=0, max_cycles=None,
        idle_limit=2_000_000, drain=64, trace=None, trace_frames=None, trace_scopes=(),
        seconds=None, least_frames=1, sequences=0,
    ):  # fmt: skip
        """Feed every input's beats and collect the outputs.

        The run ends when every output has given ``expected_beats``, or ``frames`` beats whose top
        bit (``last``) is set; by default as many frames as the first input has. Then the rest of
        the inputs must be taken, and no output may follow for ``drain`` cycles.

        Parameters
        ----------
        beats : Mapping[str, ndarray]
            Payloads per input as :func:`~nnef_hw.sim.frames.pack_frames` makes them.
        expected_beats : Mapping[str, int], optional
            When to stop, per output.
        frames : int, optional
            When to stop.
        stall : float
            Probability per cycle that a source offers nothing new, and that a sink is not ready.
        seed : int
            Seed of the stalls.
        max_cycles : int, optional
            Give up after so many cycles.
        idle_limit : int
            Cycles without a beat on any side that count as a deadlock.
        drain : int
            Cycles to watch for surplus output; 0 stops at once, with input left or not.
        trace : Path, optional
            Waveform to write, .vcd or .fst.
        trace_frames : int, optional
            How many frames of every output it has; all by default.
        trace_scopes : Sequence[str]
            Instances that it has, with all below them, as in ``top.relu1``; all by default.
        seconds : float, optional
            When no further frame is begun. What was begun is completed, and is what those frames
            alone would have given. Needs ``frames`` and ``expected_beats``.
        least_frames : int
            How many are begun in any case.
        sequences : int
            Reset the module for a cycle between so many equal parts of all streams, each as soon as
            the one before has been delivered; then ``frames`` counts them. Needs
            ``expected_beats``. 0 never resets it.

        Returns
        -------
        RunResult
            Its fields are dicts by stream.

        Raises
        ------
        CheckError
            Deadlock, too many cycles, surplus output, or a broken stream protocol.
        OutputError
            The disk has no space for the waveform.
        """
        if (expected_beats is not None and frames is not None) != (seconds is not None):
            raise ValueError("expected_beats and frames cannot both be given, but for seconds")
        if sequences and expected_beats is None:
            raise ValueError("sequences need expected_beats")
        if not 0 <= stall < 1:
            raise ValueError(f"stall must lie in [0, 1), not {stall!r}")
        words = {name: self._input_words(name, beats[name]) for name in self._inputs}
        if expected_beats is None and frames is None:
            first = self._inputs[0]
            word, shift = divmod(self._widths[first] - 1, 64)
            frames = int((words[first][:, word] >> np.uint64(shift) & np.uint64(1)).sum())
        wanted = {name: expected_beats[name] if expected_beats else 0 for name in self._outputs}
        if not frames and not all(wanted.values()):
            raise ValueError("a run needs at least one frame or output beat to wait for")
        suffix = Path(trace).suffix.removeprefix(".") if trace else ""
        if trace and suffix not in {"vcd", "fst"}:
            raise ValueError(f"a trace file must end in .vcd or .fst, not {str(trace)!r}")
        model = self._model(suffix)
        with tempfile.TemporaryDirectory(prefix="nnef-hw-") as scratch:
            folder = Path(scratch)
            arguments = [
                "out.bin", repr(float(stall)), seed % 2**63, frames or 0, idle_limit,
                max_cycles or 0, drain,
                # 0 is no limit
                0 if seconds is None else max(seconds, 1e-9), least_frames, frames or 0,
                Path(trace).absolute() if trace else "",
                2**63 if trace_frames is None else trace_frames, ",".join(trace_scopes), sequences,
            ]  # fmt: skip
            for n, name in enumerate(self._inputs):
                with writing(folder):
                    words[name].tofile(folder / f"in{n}.bin")
                arguments += [f"in{n}.bin", words[name].shape[1]]
            for name in self._outputs:
                arguments += [self._words(name), self._widths[name], wanted[name]]
            tool = Tool("simulation", (str(model.executable),), "", model.executable)
            try:
                run_tool(tool, arguments, cwd=folder)
            except ToolError as error:
                if "waveform: disk full" not in error.reason:
                    raise
                full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                raise output_error(full, Path(trace)) from error
            raw = (folder / "out.bin").read_bytes()

        status, cycles, seconds, fault = _HEADER.unpack_from(raw)
        numbers = np.frombuffer(raw, np.uint64, offset=_HEADER.size)
        streams = (*self._inputs, *self._outputs)
        counts = dict(zip(streams, numbers[: len(streams)].tolist(), strict=True))
        if status:
            reason = _FAILURES[status].format(
                idle=idle_limit, limit=max_cycles, cycle=cycles, sink=self._outputs[fault]
            )
            state = [f"{n} took {counts[n]} of {len(words[n])} beats" for n in self._inputs]
            state += [
                f"{n} gave {counts[n]} beats of {wanted[n] or f'{frames} frames'}"
                for n in self._outputs
            ]
            raise CheckError(
                f"simulation failed: {reason}, after {', '.join(state)} "
                f"(cycle {cycles}, stall {stall}, seed {seed})"
            )
        parts = iter(self._split(numbers[len(streams) :], counts))
        in_cycles = {name: next(parts).astype(np.int64) for name in self._inputs}
        out_cycles, payloads = {}, {}
        for name in self._outputs:
            out_cycles[name] = next(parts).astype(np.int64)
            payloads[name] = next(parts)
            if self._words(name) > 1:
                payloads[name] = payloads[name].reshape(counts[name], -1)
        return RunResult(payloads, in_cycles, out_cycles, cycles, seconds)

    def _split(self, numbers, counts):
        """Cycles per input; cycles and words of the beats per output."""
        sizes = [counts[name] for name in self._inputs]
        for name in self._outputs:
            sizes += [counts[name], counts[name] * self._words(name)]
        return np.split(numbers, np.cumsum(sizes)[:-1])

    def _words(self, stream):
        """Words of a payload."""
        return -(-self._widths[stream] // 64)

    def _model(self, trace):
        if trace not in self._models:
            ports = {"clk": "in", "rst": "in"}
            for names, forth, back in ((self._inputs, "in", "out"), (self._outputs, "out", "in")):
                for name in names:
                    ports |= {f"{name}__payload": forth, f"{name}__valid": forth}
                    ports |= {f"{name}__ready": back}
            prelude = "".join(
                f"#define {macro}(X) {' '.join(f'X({name})' for name in names)}\n"
                for macro, names in (("INPUTS", self._inputs), ("OUTPUTS", self._outputs))
            )
            self._models[trace] = build_model(
                self._verilog, harness=_HARNESS, runner=_RUNNER, prelude=prelude, ports=ports,
                trace=trace, **self._options,
            )  # fmt: skip
        return self._models[trace]

    def _input_words(self, stream, beats):
        """Input payloads as rows of words, checked against the port's width."""
        words = np.ascontiguousarray(beats, np.uint64)
        width, expected = self._widths[stream], self._words(stream)
        if words.ndim == 1 and expected == 1:
            words = words[:, np.newaxis]
        if words.ndim != 2 or words.shape[1] != expected:
            raise ValueError(
                f"payloads of {width} bits must be uint64 ({expected} words each), "
                f"not {words.shape}"
            )
        spare = width % 64
        if spare and len(words) and int(words[:, -1].max()) >> spare:
            raise ValueError(f"a payload has more than {width} bits")
        return words
