"""Result of a toolchain for a design, as a build keeps it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from nnef_hw.arithmetic.records import JsonView

__all__ = ["Resource", "SynthesisResult"]


@dataclass(frozen=True, slots=True)
class Resource:
    """Resources of one kind that a design uses, and that the device has."""

    used: int
    available: int


@dataclass(frozen=True, slots=True)
class SynthesisResult:
    """The result of synthesis, place and route; of a toolchain that does not place, its files.

    Attributes
    ----------
    fmax_mhz
        Highest frequency of the clock that is closest to missing its constraint; None if the
        design has no clock, or is not placed.
    frequency_mhz
        That clock's constraint.
    timing_met
        Every clock reaches its constraint; None if the design is not placed.
    clocks
        Frequency and constraint in MHz of every clock, by the toolchain's names.
    resources
        ``lut``, ``ff``, ``dsp``, ``bram`` and, on iCE40, ``spram``. One logic cell of an iCE40
        holds a LUT, a flip-flop and a carry: ``lut`` counts the cells. Empty if the design is not
        placed.
    cells
        Mapped cells by type.
    files
        Names below the folder: where there are any, ``bitstream``, ``floorplan`` (places of the
        cells, :mod:`nnef_hw.place.floorplan`), and others as the toolchain calls them.
    seconds
        Time by step.
    seeds
        Highest frequency of the same clock by the seed of the placement, up to the first that is in
        time; None where there is no route.
    seed
        The one that was packed: that first one, or the fastest.
    path
        Cells and delays in ns along the path that limits that clock.
    clock_mhz
        The clock that the PLL was set to after routing; None where it stays as it was.
    """

    fmax_mhz: float | None
    frequency_mhz: float
    timing_met: bool | None
    clocks: dict[str, tuple[float, float]]
    resources: dict[str, Resource]
    cells: dict[str, int]
    files: dict[str, str]
    seconds: dict[str, float]
    seeds: dict[str, float | None] = field(default_factory=dict)
    seed: int | None = None
    path: list[list[object]] = field(default_factory=list)
    clock_mhz: float | None = None

    @property
    def is_placed(self) -> bool:
        """Whether the design has places and routes."""
        return self.timing_met is not None

    @classmethod
    def unplaced(
        cls, frequency_mhz: float, cells: dict[str, int], files: dict[str, str],
        seconds: dict[str, float],
    ) -> SynthesisResult:  # fmt: skip
        """Return the result of a toolchain that leaves placement to another program."""
        return cls(None, frequency_mhz, None, {}, {}, cells, files, seconds)

    def to_json(self) -> dict[str, object]:
        """Return JSON values, which :meth:`from_json` takes back."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: JsonView) -> SynthesisResult:
        """Restore a result from a record."""
        fields = dict(value)
        fields["resources"] = {name: Resource(**r) for name, r in value["resources"].items()}
        fields["clocks"] = {name: (f, limit) for name, (f, limit) in value["clocks"].items()}
        return cls(**fields)
