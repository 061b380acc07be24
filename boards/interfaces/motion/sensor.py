"""A sensor of motion is data: what is written to it, and what is read."""

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["FACTOR_BITS", "NUMBER_BITS", "MotionSensor", "Write"]

Write = tuple[int, int]
"""A register and its value."""
NUMBER_BITS = 16
"""Bits of a number that a sensor gives, signed: the highest one is its full scale."""
FACTOR_BITS = 16
"""Bits of the factor by which a number becomes a code."""


@dataclass(frozen=True)
class MotionSensor:
    """A sensor of acceleration and rotation, with registers of eight bits behind two wires (I2C).

    Parameters
    ----------
    name
        Its name for users.
    title
        Its name in messages.
    address
        Of seven bits, on the two wires.
    identity
        Register that tells what the sensor is, and what it holds.
    register
        Register of the first number.
    acceleration, rotation
        Which numbers from there on are the acceleration along x, y and z, and the rotation.
    accelerations, rotations
        Full scales that it has, in g and in degrees per second, by the number in its register.
    most_rate
        New numbers per second, at most.
    writes
        Returns the registers to write, for a rate and two full scales.
    """

    name: str
    title: str
    address: int
    identity: Write
    register: int
    acceleration: tuple[int, ...]
    rotation: tuple[int, ...]
    accelerations: tuple[int, ...]
    rotations: tuple[int, ...]
    most_rate: int
    writes: Callable[[int, int, int], tuple[Write, ...]]
