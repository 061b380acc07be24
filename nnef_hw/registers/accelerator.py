"""The registers that every accelerator behind a bus has."""

from __future__ import annotations

from nnef_hw.registers.table import (
    CONSTANT,
    EVENT,
    POP,
    PULSE,
    PUSH,
    READ,
    WORD_BITS,
    WRITE,
    Field,
    Register,
    RegisterMap,
)

__all__ = ["CYCLE_BITS", "ID", "accelerator_registers"]

ID = int.from_bytes(b"NNHW", "little")
CYCLE_BITS = 25


def _word(name: str, description: str, field: Field) -> Register:
    return Register(name, description, (field,))


def accelerator_registers(
    name: str, title: str, build_hash: bytes, *, with_data: bool, with_program: bool = False
) -> RegisterMap:
    """Return the registers of an accelerator.

    Parameters
    ----------
    build_hash
        Hash by which software recognises the build; its first four bytes stand in a register.
    with_data
        Frames pass through registers.
    with_program
        The program of an engine may be loaded through registers.
    """
    load = Field(
        "load", PULSE,
        "Begins to load a program from its first word on: all that restart does, and no frame "
        "enters until the last word has come.",
        2,
    )  # fmt: skip
    registers = [
        _word(
            "id", "Tells that there is an accelerator of nnef-hw.",
            Field("id", CONSTANT, "The letters NNHW, the first one lowest.", 0, WORD_BITS, ID),
        ),
        _word(
            "hash", "Tells which build it is.",
            Field(
                "hash", CONSTANT,
                "The first four bytes of MODEL_HASH of model.h, the first one lowest.",
                0, WORD_BITS, int.from_bytes(build_hash[:4], "little"),
            ),
        ),
        Register(
            "control", "Starts, holds and restarts the accelerator.",
            (
                Field(
                    "run", WRITE,
                    "Frames enter; at 0 one that has begun enters to its end, and no other one.",
                    0, 1, 1,
                ),
                Field(
                    "restart", PULSE,
                    "Drops all frames inside, lets states begin with their initial values, and "
                    "clears frames, latency and interval.",
                    1,
                ),
                *([load] if with_program else []),
            ),
        ),
        Register(
            "status", "Says what the accelerator does.",
            (Field("busy", READ, "A frame is inside the accelerator.", 0),),
        ),
        _word(
            "threshold", "How many frames make the event done.",
            Field(
                "threshold", WRITE, "Finished frames from one event to the next; 0 counts as 1.",
                0, 16, 1,
            ),
        ),
        Register(
            "interrupt", "Events that have happened.",
            (Field("done", EVENT, "As many frames as the threshold says are finished.", 0),),
        ),
        Register(
            "interrupt_enable", "Events that raise the interrupt while they stand.",
            (Field("done", WRITE, "The event done raises it.", 0),),
        ),
        _word(
            "frames", "How many frames are finished.",
            Field(
                "frames", READ, "Frames since the last restart; it wraps around.", 0, WORD_BITS
            ),
        ),
        _word(
            "latency", "Cycles of a lone frame.",
            Field(
                "latency", READ,
                "From the first beat in to the last beat out of the latest frame that entered an "
                "empty accelerator; 2**24 stands for as many or more.",
                0, CYCLE_BITS,
            ),
        ),
        _word(
            "interval", "Cycles per frame.",
            Field(
                "interval", READ,
                "Between the last beats of the latest two frames that left; 2**24 stands for as "
                "many or more.",
                0, CYCLE_BITS,
            ),
        ),
    ]  # fmt: skip
    if with_data:
        registers += [
            _word(
                "input_free", "Room for input.",
                Field("input_free", READ, "Words that may be written to input.", 0, 16),
            ),
            _word(
                "result_ready", "Results that wait.",
                Field("result_ready", READ, "Words that may be read from result.", 0, 16),
            ),
            _word(
                "input", "Takes the frames.",
                Field(
                    "input", PUSH,
                    "Four bytes of a frame, the first one lowest. A frame begins with a new word; "
                    "what its last word has too many is ignored.",
                    0, WORD_BITS,
                ),
            ),
            _word(
                "result", "Gives the results.",
                Field(
                    "result", POP,
                    "Four bytes of a result, the first one lowest. A result begins with a new "
                    "word; what its last word has too many is 0.",
                    0, WORD_BITS,
                ),
            ),
        ]  # fmt: skip
    if with_program:
        registers += [
            _word(
                "program_left", "How much of a program is missing.",
                Field(
                    "program_left", READ, "Words that are to be written to program; 0 at first.",
                    0, WORD_BITS,
                ),
            ),
            _word(
                "program", "Takes the program of an engine, with its weights.",
                Field(
                    "program", PUSH,
                    "Four bytes of ip/program.bin, the first one lowest, after load.",
                    0, WORD_BITS,
                ),
            ),
        ]  # fmt: skip
    return RegisterMap(name, title, tuple(registers))
