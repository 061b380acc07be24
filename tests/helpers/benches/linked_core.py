"""A :class:`LinkedCore` in Verilator, its accelerator's switches, and what goes on in it."""

import struct
import subprocess
from pathlib import Path

import numpy as np
from amaranth.back import verilog
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.rtl.base.primitives import primitives_verilog
from nnef_hw.sim.verilator import build_model
from nnef_hw.system.process_group import start_process

__all__ = ["CoreModel", "CoreRun"]

_COMMAND = struct.Struct("<4Q")
_ANSWER = struct.Struct("<6Q")


class _Bench(wiring.Component):
    """A core whose accelerator is an :class:`.Increment`, with ports to switch and watch it."""

    def __init__(self, core):
        self.core = core
        super().__init__({
            "rx": In(1, init=1),
            "tx": Out(1),
            "led": Out(1),
            "enable": In(1),
            "parity": Out(1),
            "beat": Out(core.accelerator.layout.size),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = self.core
        accelerator = core.accelerator
        m.d.comb += [
            core.rx.eq(self.rx),
            self.tx.eq(core.tx),
            self.led.eq(core.led),
            accelerator.enable.eq(self.enable),
            self.parity.eq(accelerator.parity),
            self.beat.eq(accelerator.beat),
        ]
        return m


class CoreModel:
    """A core, compiled.

    Parameters
    ----------
    core : LinkedCore
        Its accelerator is an :class:`.Increment` of at most 64 bits per beat.
    divider : int
        Cycles per bit of the line.
    """

    def __init__(self, core, divider):
        self.latency = core.latency
        self.layout = core.accelerator.layout
        # Not by our own conversion: the switches reach through the hierarchy.
        text = verilog.convert(_Bench(core), name="top", emit_src=False) + primitives_verilog()
        model = build_model(
            text,
            harness=Path(__file__).with_suffix(".cpp"),
            prelude=f"#define BIT_CYCLES {divider}\n",
        )
        self.executable = model.executable


class CoreRun:
    """A run of a core from its reset on.

    Parameters
    ----------
    model : CoreModel

    Attributes
    ----------
    cycle : int
        Cycles so far.
    lit : int
        Level of the led.
    accepted : list of (list of int, int)
        Codes and ``last`` of the beats that the accelerator took.
    request_starts, reply_starts : list of int
        Cycles in which bytes began to be sent and to be received.
    """

    def __init__(self, model):
        self._layout = model.layout
        self._process = start_process(
            [model.executable], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.cycle = self.lit = 0
        self.accepted = []
        self.request_starts, self.reply_starts = [], []

    def advance(self, cycles, *, sent=b"", enable=True, pressed=False):
        """Run until a byte has been received, at most for so many cycles; return what was."""
        command = _COMMAND.pack(len(sent), cycles, enable, pressed) + bytes(sent)
        self._process.stdin.write(command)
        self._process.stdin.flush()
        self.cycle, self.lit, *counts = _ANSWER.unpack(self._process.stdout.read(_ANSWER.size))
        received, requests, replies, beats = (self._words(count) for count in counts)
        self.request_starts += requests
        self.reply_starts += replies
        for word in beats:
            beat = self._layout.from_bits(word)
            self.accepted.append(([*beat.data], beat.last))
        return bytes(received)

    def close(self):
        """End it."""
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def _words(self, count):
        return np.frombuffer(self._process.stdout.read(8 * count), np.uint64).tolist()
