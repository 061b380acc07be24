"""Where a banked line buffer keeps the positions of an axis, and which port reads which tap."""

from math import gcd
from typing import NamedTuple

__all__ = ["BankAxis", "Rotation"]

WAYS = 4
"""Inputs of the widest multiplexer between two registers."""


class Rotation(NamedTuple):
    """Stage of multiplexers: amounts to rotate by, and which one for every phase."""

    amounts: list[int]
    selects: list[int]


class BankAxis:
    """How windows step along an axis, and where the positions that they cover are stored.

    Position y is at ``y // modulus`` of the ports whose index is y modulo ``modulus``, which is the
    kernel's extent if the axis is split, and else 1. A *phase* is a window's first position modulo
    ``modulus``.

    Parameters
    ----------
    extent : int
        Positions of the image.
    kernel, stride, dilation : int
        Of the windows.
    before : int
        Padding in front of the first position.
    positions : int
        Windows.
    split : bool
        Whether a port holds congruent positions instead of all.

    Attributes
    ----------
    stored : int
        Positions that a port holds.
    rotations : list[Rotation]
        What brings the ports' words into the order of the taps.
    port_order : list[int]
        Which port stands where before these.

    Raises
    ------
    ValueError
        If a split axis has a kernel and a dilation with a common divisor.
    """

    def __init__(self, extent, kernel, stride, dilation, before, positions, *, split):
        if split and gcd(kernel, dilation) > 1:
            raise ValueError(f"BankedLineBuffer cannot split an axis of kernel {kernel} and "
                             f"dilation {dilation}")
        self.extent = extent
        self.kernel = kernel
        self.stride = stride
        self.dilation = dilation
        self.before = before
        self.positions = positions
        self.modulus = kernel if split else 1
        self.stored = -(-extent // self.modulus)
        self.phases = {(o * stride - before) % self.modulus for o in range(positions)}
        order = range(0, kernel * dilation, dilation) if split else range(kernel)
        self.rotations = []
        fixed = 0
        weight = 1
        while weight < self.modulus:
            amounts = [self.rotation(phase) // weight % WAYS * weight
                       for phase in range(self.modulus)]
            needed = sorted({amounts[phase] for phase in self.phases})
            if len(needed) > 1:
                selects = [needed.index(n) if n in needed else 0 for n in amounts]
                self.rotations.append(Rotation(needed, selects))
            else:
                fixed += needed[0]
            weight *= WAYS
        self.port_order = [order[(n + fixed) % kernel] % kernel for n in range(kernel)]

    def rotation(self, phase):
        """Return by how many places ``port_order`` is ahead of the taps."""
        return phase * pow(self.dilation, -1, self.modulus) % self.modulus

    def quotient(self, port, first):
        """Return what a port reads for the window at position ``first``: its tap's place."""
        [tap] = [k for k in range(self.kernel)
                 if k == port or self.modulus > 1
                 if (first + self.dilation * k - port) % self.modulus == 0]
        return (first + self.dilation * tap) // self.modulus

    def advances(self, port):
        """Return by how much a port's place moves on from a window of every phase."""
        return [self.quotient(port, phase + self.stride) - self.quotient(port, phase)
                for phase in range(self.modulus)]

    def outside(self, tap):
        """Tell for every window whether a tap lies outside the image."""
        places = (o * self.stride - self.before + self.dilation * tap
                  for o in range(self.positions))
        return [not 0 <= place < self.extent for place in places]
