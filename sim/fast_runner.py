"""Cycle-accurate simulation of a stream accelerator at the speed of compiled code."""

import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nnef_hw.errors import CheckError
from nnef_hw.sim.verilator import build_model
from nnef_hw.tools import Tool, run_tool

__all__ = ["FastRunner", "RunResult"]

_HARNESS = Path(__file__).with_suffix(".cpp")
_PORTS = {
    "clk": "in", "rst": "in",
    "i__payload": "in", "i__valid": "in", "i__ready": "out",
    "o__payload": "out", "o__valid": "out", "o__ready": "in",
}  # fmt: skip
_HEADER = struct.Struct("<4Qd24x")
_FAILURES = {
    1: "no beat moved on either side for {idle} cycles",
    2: "the run did not end within {limit} cycles",
    3: "o.valid fell in cycle {cycle} before the beat was taken",
    4: "o.payload changed in cycle {cycle} while the beat was waiting",
    5: "one more output beat than expected came in cycle {cycle}",
}


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run delivered.

    ``in_cycles`` and ``out_cycles`` are the cycles in which the beats moved, counted from the
    first cycle after reset; ``payloads`` has a row of words per output beat if one does not do.
    """

    payloads: np.ndarray
    in_cycles: np.ndarray
    out_cycles: np.ndarray
    cycles: int
    seconds: float

    @property
    def cycles_per_second(self):
        """Speed of the simulation."""
        return self.cycles / self.seconds if self.seconds else float("inf")


class FastRunner:
    """A compiled model of a module with one input stream ``i`` and one output stream ``o``.

    Parameters
    ----------
    verilog : str
        Its Verilog, complete.
    top : str
        Name of the module.
    speed : bool
        Spend more time in the compiler for a faster run.
    defines : Sequence[str]
        Verilog macros.
    cache_dir : Path, optional
        Where compiled models are kept; the user's cache by default.
    """

    def __init__(self, verilog, top="top", *, speed=False, defines=(), cache_dir=None):
        self._verilog = verilog
        self._options = {"top": top, "speed": speed, "defines": defines, "cache_dir": cache_dir}
        self._models = {}
        ports = self._model("").ports
        self.in_width = ports["i__payload"].width
        self.out_width = ports["o__payload"].width

    def run(
        self, beats, *, expected_beats=None, frames=None, stall=0.0, seed=0, max_cycles=None,
        idle_limit=2_000_000, drain=64, trace=None,
    ):  # fmt: skip
        """Feed beats and collect the output.

        The run ends after ``expected_beats`` output beats, or after ``frames`` beats whose top bit
        (``last``) is set; by default after as many frames as the input has. Then the rest of the
        input must be taken, and no output may follow for ``drain`` cycles.

        Parameters
        ----------
        beats : ndarray
            Input payloads as :func:`~nnef_hw.sim.frames.pack_frames` makes them.
        expected_beats, frames : int, optional
            When to stop.
        stall : float
            Probability per cycle that the source offers nothing new, and that the sink is not
            ready.
        seed : int
            Of the stalls.
        max_cycles : int, optional
            Give up after so many cycles.
        idle_limit : int
            Cycles without a beat on either side that count as a deadlock.
        drain : int
            Cycles to watch for surplus output; 0 stops at once, with input left or not.
        trace : Path, optional
            Waveform to write, .vcd or .fst.

        Returns
        -------
        RunResult

        Raises
        ------
        CheckError
            Deadlock, too many cycles, surplus output, or a broken stream protocol.
        """
        if expected_beats is not None and frames is not None:
            raise ValueError("expected_beats and frames cannot both be given")
        if not 0 <= stall < 1:
            raise ValueError(f"stall must lie in [0, 1), not {stall!r}")
        words = self._input_words(beats)
        if expected_beats is None and frames is None:
            top = self.in_width - 1
            frames = int((words[:, top // 64] >> np.uint64(top % 64) & np.uint64(1)).sum())
        if (frames or expected_beats or 0) < 1:
            raise ValueError("a run needs at least one frame or output beat to wait for")

        suffix = Path(trace).suffix.removeprefix(".") if trace else ""
        if trace and suffix not in {"vcd", "fst"}:
            raise ValueError(f"a trace file must end in .vcd or .fst, not {str(trace)!r}")
        out_words = -(-self.out_width // 64)
        model = self._model(suffix)
        with tempfile.TemporaryDirectory(prefix="nnef-hw-") as scratch:
            folder = Path(scratch)
            words.tofile(folder / "in.bin")
            run_tool(
                Tool("simulation", (str(model.executable),), "", model.executable),
                [
                    "in.bin", "out.bin", words.shape[1], out_words, self.out_width,
                    repr(float(stall)), seed % 2**63, expected_beats or 0, frames or 0, idle_limit,
                    max_cycles or 0, drain, Path(trace).absolute() if trace else "",
                ],
                cwd=folder, log=folder / "log",
            )  # fmt: skip
            raw = (folder / "out.bin").read_bytes()

        status, cycles, taken, given, seconds = _HEADER.unpack_from(raw)
        if status:
            reason = _FAILURES[status].format(idle=idle_limit, limit=max_cycles, cycle=cycles)
            wanted = f"{expected_beats} beats" if expected_beats else f"{frames} frames"
            raise CheckError(
                f"simulation failed: {reason}, after {taken} of {len(words)} input beats and "
                f"{given} output beats of {wanted} (cycle {cycles}, stall {stall}, seed {seed})"
            )
        numbers = np.frombuffer(raw, np.uint64, offset=_HEADER.size)
        in_cycles, out_cycles, payloads = np.split(numbers, [taken, taken + given])
        payloads = payloads.reshape(given, out_words) if out_words > 1 else payloads
        return RunResult(
            payloads, in_cycles.astype(np.int64), out_cycles.astype(np.int64), cycles, seconds
        )

    def _model(self, trace):
        if trace not in self._models:
            self._models[trace] = build_model(
                self._verilog, harness=_HARNESS, ports=_PORTS, trace=trace, **self._options
            )
        return self._models[trace]

    def _input_words(self, beats):
        """Input payloads as rows of words, checked against the port's width."""
        words = np.ascontiguousarray(beats, np.uint64)
        expected = -(-self.in_width // 64)
        if words.ndim == 1 and expected == 1:
            words = words[:, np.newaxis]
        if words.ndim != 2 or words.shape[1] != expected:
            raise ValueError(
                f"payloads of {self.in_width} bits must be uint64 ({expected} words each), "
                f"not {words.shape}"
            )
        spare = self.in_width % 64
        if spare and len(words) and int(words[:, -1].max()) >> spare:
            raise ValueError(f"a payload has more than {self.in_width} bits")
        return words
