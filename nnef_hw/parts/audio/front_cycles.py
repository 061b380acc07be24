"""Cycles of the program of TensorFlow Lite Micro's front end, between samples and features."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from nnef_hw.arithmetic.audio.micro_frontend import MicroFrontend
from nnef_hw.parts.audio.front_program import MEMORY_WORDS, FrontProgram
from nnef_hw.parts.audio.program import Kind, Load, Register

__all__ = ["FrontCycles", "front_cycles"]


class FrontCycles(NamedTuple):
    """Sizes of a program, and when it takes and gives.

    Attributes
    ----------
    code, words, numbers
        Instructions, factors, and words of numbers.
    clears, clears_again
        Cycles of instructions before the first samples of all, and of another inference.
    gives
        For each channel, the cycles from the last sample of a frame to its feature.
    again
        Cycles from there to where samples are taken.
    """

    code: int
    words: int
    numbers: int
    clears: int
    clears_again: int
    gives: tuple[int, ...]
    again: int


@cache
def front_cycles(hop: int) -> FrontCycles:
    """Return when the program of a front end takes samples and gives features."""
    program = FrontProgram(MicroFrontend(hop), 1)
    begin, _ = _walk(program, 0)
    again, _ = _walk(program, program.clear_again)
    total, gives = _walk(program, program.take + 1)
    sizes = len(program.code), len(program.words), program.numbers
    return FrontCycles(*sizes, begin, again, tuple(gives), total)


def _walk(program: FrontProgram, start: int) -> tuple[int, list[int]]:
    """Return the cycles up to where samples are taken, and those of what is given."""
    registers = dict.fromkeys(Register, 0)
    loads = {Load.M: Register.M, Load.J: Register.J, Load.L: Register.L}
    here, following, cycle, gives = start, start + 1, 0, list[int]()
    while program.code[here].kind != Kind.TAKE:
        step = program.code[here]
        cycle += 1
        after = following + 1
        if step.kind == Kind.GIVE:
            gives.append(cycle)
        elif step.kind == Kind.STEP:
            old = 0 if step.begins else registers[step.register]
            value = registers[step.register] = (old + step.read.at) % MEMORY_WORDS
            if step.jumps and value != step.word.at:
                after = step.target.at
        elif step.load in loads:
            # tables by channel
            registers[loads[step.load]] = program.words[step.word.at + registers[Register.C]]
        here, following = following, after
    return cycle, gives
