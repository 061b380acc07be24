"""The requantizer of a shared engine, and the second rounding that TensorFlow Lite wants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import Tiling
from nnef_hw.parts.engine.feature import EngineSizes, Feature, trained
from nnef_hw.parts.engine.fields import Record, fact
from nnef_hw.parts.engine.sizes import CODE_BITS

__all__ = ["Requantized", "SharedRequantizer", "Rounding", "SecondRounding"]

_SERIAL_LUTS = 100
"""Of rounding, limits and flags, where digits are multiplied in turn."""


@dataclass(frozen=True, kw_only=True)
class Requantized(Record):
    """Way from sums to codes, besides their biases and factors."""

    zero_point: int = fact(
        "the code of 0.0", bits=CODE_BITS, late=True, constant=True, trained=True
    )
    low: int = fact("the least code", bits=CODE_BITS, late=True, constant=True)
    high: int = fact("the greatest code", bits=CODE_BITS, late=True, constant=True)


@dataclass(frozen=True, kw_only=True)
class Rounding(Record):
    """Number of times that results are rounded."""

    rounds_once: int = fact("the first rounding is left out", bits=1, late=True, constant=True)


@dataclass(frozen=True, kw_only=True)
class SharedRequantizer(Feature):
    """Adds a bias, multiplies by a factor, shifts, rounds, limits.

    Parameters
    ----------
    factor_bits, shift
        Width of the factors that sums are multiplied with, and the shift behind.
    digit_bits
        Bits of the factor per stage.
    cycles
        Cycles per result: 1; or more, where a single stage multiplies by one digit after the other.
    holds_places
        Whether addresses to write wait in registers, not in a block RAM: results are apart then.
    """

    label = "requantizer"
    component = "nnef_hw.rtl.engine.results:EngineRequantizer"
    says = (Requantized,)

    factor_bits: int = trained("factor_bits")
    shift: int = trained("shift", most="a shift of {}")
    digit_bits: int = trained("digit_bits")
    cycles: int = 1
    holds_places: bool = False

    def __post_init__(self) -> None:
        if self.holds_places and not self.is_serial:
            raise ValueError("Engine requantizer holds places of results that are apart only")
        if self.is_serial and self.stages >= self.cycles:
            raise ValueError(
                f"Engine requantizer has {self.stages} digits for {self.cycles} cycles, the last "
                "of which rounds"
            )

    @property
    def is_serial(self) -> bool:
        """Whether one multiplier takes digits in turn."""
        return self.cycles > 1

    @property
    def stages(self) -> int:
        """Digits of a factor: multipliers in a row, or cycles of one."""
        return -(-self.factor_bits // self.digit_bits)

    @property
    def extra_bits(self) -> int:
        """Bits by which sums are scaled up, so that there is one to round at."""
        return max(0, self.stages * self.digit_bits + 1 - self.shift)

    def memories(self, engine: EngineSizes) -> Sequence[Tiling]:
        """Return where addresses to write wait for it."""
        if self.holds_places:
            return ()
        return (engine.delay_memory(engine.requantizer_delay),)

    def held_places(self, engine: EngineSizes) -> int:
        """Return how many addresses wait in registers: a power of two."""
        results = -(-engine.requantizer_delay // self.cycles)
        return 1 << (results - 1).bit_length()

    def luts(self, engine: EngineSizes, device: Device) -> float:
        if self.is_serial:
            held = engine.write_bits * self.held_places(engine) if self.holds_places else 0
            own = (self.digit_bits + 2.0) * engine.acc_bits + self.factor_bits + _SERIAL_LUTS
            return own + held
        of_result = (self.digit_bits + 1.0) * self.stages * engine.acc_bits
        of_result += 1.5 * self.factor_bits + self.stages * self.factor_bits / 2
        return of_result * engine.results

    def flip_flops(self, engine: EngineSizes) -> float:
        if self.is_serial:
            own = 2 * engine.acc_bits + self.factor_bits + 2 * CODE_BITS
            held = engine.write_bits * self.held_places(engine) if self.holds_places else 0
            return own + held + 3 * engine.requantizer_delay
        bits = 2 * engine.acc_bits + self.factor_bits / 2
        return engine.results * self.stages * bits + 3 * engine.requantizer_delay


@dataclass(frozen=True, kw_only=True)
class SecondRounding(Feature):
    """Results are rounded behind the shift, as TensorFlow Lite does, and shifted again.

    Parameters
    ----------
    least_shift, more_shift_bits
        All of them are shifted at least so far, each further by a number of so many bits.
    """

    label = "second rounding"
    says = (Rounding,)

    least_shift: int = trained("least_shift")
    more_shift_bits: int = trained("more_shift_bits")

    cycles = 2
    """Cycles that it takes."""
