"""Settings of the clock generators: what they can make, and the primitive that makes it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

__all__ = ["Amd7Mmcm", "AroraPll", "Ecp5Pll", "GowinPll", "Ice40Pll", "Pll", "SettablePll"]


class Pll(ABC):
    """Settings of a clock generator."""

    @classmethod
    @abstractmethod
    def settings(cls, input_mhz, *, pad):
        """All settings within the limits of the data sheet, those with the least dividers first.

        ``pad``: the input comes from the generator's own pad, if it has one.
        """

    @property
    @abstractmethod
    def output_mhz(self):
        """Frequency of the generated clock."""

    @abstractmethod
    def instance(self, clk_in, clk_out, locked):
        """Primitive behind the clock pin ``clk_in``."""


class SettablePll(Pll):
    """Settings of a clock generator that can be set anew in a routed design."""

    outputs: ClassVar[Mapping[str, str]]
    """Primitives that make a clock of its own, and the port of each that gives it."""

    def instance_with_input(self, clk_in, clk_out, locked):
        """Primitive, and the clock of the pin for other uses: a pad of its own may be its alone."""
        return self.instance(clk_in, clk_out, locked), clk_in

    @property
    @abstractmethod
    def parameters(self):
        """Parameters of the primitive that depend on the setting, numbers by name."""


@dataclass(frozen=True)
class Ice40Pll(SettablePll):
    """``SB_PLL40`` with simple feedback: ``input * (divf + 1) / (divr + 1) / 2**divq``.

    ``pad``: the input comes from the PLL's own pad, otherwise from anywhere.
    """

    input_mhz: float
    divr: int
    divf: int
    divq: int
    pad: bool = True

    outputs = {"SB_PLL40_2_PAD": "PLLOUTGLOBALB", "SB_PLL40_CORE": "PLLOUTGLOBAL"}

    @classmethod
    def settings(cls, input_mhz, *, pad=True):
        """All settings within the limits of the data sheet."""
        for divr in range(16):
            phase_mhz = input_mhz / (divr + 1)
            if not 10 <= phase_mhz <= 133:
                continue
            for divf in range(128):
                if not 533 <= phase_mhz * (divf + 1) <= 1066:
                    continue
                for divq in range(1, 7):
                    pll = cls(input_mhz, divr, divf, divq, pad)
                    if 16 <= pll.output_mhz <= 275:
                        yield pll

    @property
    def output_mhz(self):
        """Frequency of the generated clock."""
        return self.input_mhz / (self.divr + 1) * (self.divf + 1) / (1 << self.divq)

    @property
    def filter_range(self):
        """Loop filter, by the frequency of the phase detector."""
        phase_mhz = self.input_mhz / (self.divr + 1)
        return 1 + sum(phase_mhz >= limit for limit in (17, 26, 44, 66, 101))

    @property
    def parameters(self):
        """Dividers and loop filter."""
        return {"DIVR": self.divr, "DIVF": self.divf, "DIVQ": self.divq,
                "FILTER_RANGE": self.filter_range}

    def instance(self, clk_in, clk_out, locked):
        """Primitive behind the clock pin ``clk_in``."""
        if self.pad:
            return self._primitive("SB_PLL40_PAD", locked, i_PACKAGEPIN=clk_in,
                                   o_PLLOUTGLOBAL=clk_out)
        return self._primitive("SB_PLL40_CORE", locked, i_REFERENCECLK=clk_in,
                               o_PLLOUTGLOBAL=clk_out)

    def instance_with_input(self, clk_in, clk_out, locked):
        """Primitive, and the clock of the pin, which leaves the generator's own pad through it."""
        if not self.pad:
            return super().instance_with_input(clk_in, clk_out, locked)
        from amaranth import Signal

        through = Signal(name="pad_clk")
        return self._primitive(
            "SB_PLL40_2_PAD", locked, i_PACKAGEPIN=clk_in, o_PLLOUTGLOBALA=through,
            o_PLLOUTGLOBALB=clk_out), through

    def _primitive(self, name, locked, **pins):
        from amaranth import C, Instance

        return Instance(
            name,
            p_FEEDBACK_PATH="SIMPLE",
            p_DIVR=C(self.divr, 4),
            p_DIVF=C(self.divf, 7),
            p_DIVQ=C(self.divq, 3),
            p_FILTER_RANGE=C(self.filter_range, 3),
            i_RESETB=C(1),
            i_BYPASS=C(0),
            o_LOCK=locked,
            **pins)


@dataclass(frozen=True)
class Ecp5Pll(SettablePll):
    """``EHXPLLL`` that feeds CLKOP back and gives CLKOS: ``input / clki * clkop / clkos``."""

    input_mhz: float
    clki_div: int
    clkop_div: int
    clkos_div: int

    outputs = {"EHXPLLL": "CLKOS"}

    @classmethod
    def settings(cls, input_mhz, *, pad=False):
        """All settings within the limits of the data sheet."""
        del pad  # any pin will do
        for clki_div in range(1, 129):
            phase_mhz = input_mhz / clki_div
            if not 10 <= phase_mhz <= 400:
                continue
            for clkop_div in range(1, 129):
                if not 400 <= phase_mhz * clkop_div <= 800:
                    continue
                for clkos_div in range(1, 129):
                    pll = cls(input_mhz, clki_div, clkop_div, clkos_div)
                    if 3.125 <= pll.output_mhz <= 400:
                        yield pll

    @property
    def output_mhz(self):
        """Frequency of the generated clock."""
        return self.input_mhz / self.clki_div * self.clkop_div / self.clkos_div

    @property
    def parameters(self):
        """Dividers, and the phases in which each output follows the oscillator."""
        return {"CLKI_DIV": self.clki_div,
                "CLKOP_DIV": self.clkop_div, "CLKOP_CPHASE": self.clkop_div - 1,
                "CLKOS_DIV": self.clkos_div, "CLKOS_CPHASE": self.clkos_div - 1}

    def instance(self, clk_in, clk_out, locked):
        """Primitive behind the clock pin ``clk_in``."""
        from amaranth import C, Instance, Signal

        feedback = Signal(name="pll_feedback")
        return Instance(
            "EHXPLLL",
            a_ICP_CURRENT="12",
            a_LPF_RESISTOR="8",
            a_MFG_ENABLE_FILTEROPAMP="1",
            a_MFG_GMCREF_SEL="2",
            p_PLLRST_ENA="DISABLED",
            p_INTFB_WAKE="DISABLED",
            p_STDBY_ENABLE="DISABLED",
            p_DPHASE_SOURCE="DISABLED",
            p_FEEDBK_PATH="CLKOP",
            p_CLKFB_DIV=1,
            p_OUTDIVIDER_MUXA="DIVA",
            p_CLKOP_ENABLE="ENABLED",
            p_CLKOP_FPHASE=0,
            p_OUTDIVIDER_MUXB="DIVB",
            p_CLKOS_ENABLE="ENABLED",
            p_CLKOS_FPHASE=0,
            **{f"p_{name}": value for name, value in self.parameters.items()},
            i_CLKI=clk_in,
            i_CLKFB=feedback,
            i_RST=C(0),
            i_STDBY=C(0),
            i_PHASESEL0=C(0),
            i_PHASESEL1=C(0),
            i_PHASEDIR=C(1),
            i_PHASESTEP=C(1),
            i_PHASELOADREG=C(1),
            i_PLLWAKESYNC=C(0),
            i_ENCLKOP=C(0),
            i_ENCLKOS=C(0),
            o_CLKOP=feedback,
            o_CLKOS=clk_out,
            o_LOCK=locked)


@dataclass(frozen=True)
class GowinPll(SettablePll):
    """``rPLL`` with internal feedback: ``input * fbdiv / idiv``; ``odiv`` divides the oscillator.

    Within the limits that GW1N-9 (DS117) and GW2A-18 (DS102) have in common at the speed grades of
    the boards. Faster clocks than 120 MHz are not offered: nextpnr has no times of a DSP block, and
    what reaches one, or comes from one, is not in the clock that it promises.
    """

    input_mhz: float
    idiv: int
    fbdiv: int
    odiv: int

    outputs = {"rPLL": "CLKOUT"}

    @classmethod
    def settings(cls, input_mhz, *, pad=False):
        """All settings within the limits of the data sheets."""
        del pad  # any pin will do
        for idiv in range(1, 65):
            if not 3 <= input_mhz / idiv <= 400:
                continue
            for fbdiv in range(1, 65):
                for odiv in (2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128):
                    pll = cls(input_mhz, idiv, fbdiv, odiv)
                    if 500 <= pll.output_mhz * odiv <= 1200 and 3.90625 <= pll.output_mhz <= 120:
                        yield pll

    @property
    def output_mhz(self):
        """Frequency of the generated clock."""
        return self.input_mhz / self.idiv * self.fbdiv

    @property
    def parameters(self):
        """Dividers."""
        return {"IDIV_SEL": self.idiv - 1, "FBDIV_SEL": self.fbdiv - 1, "ODIV_SEL": self.odiv}

    def instance(self, clk_in, clk_out, locked):
        """Primitive behind the clock pin ``clk_in``."""
        from amaranth import C, Instance

        return Instance(
            "rPLL",
            p_FCLKIN=f"{self.input_mhz:g}",
            p_DYN_IDIV_SEL="false",
            p_DYN_FBDIV_SEL="false",
            p_DYN_ODIV_SEL="false",
            **{f"p_{name}": value for name, value in self.parameters.items()},
            p_CLKFB_SEL="internal",
            i_CLKIN=clk_in,
            i_CLKFB=C(0),
            i_RESET=C(0),
            i_RESET_P=C(0),
            i_FBDSEL=C(0, 6),
            i_IDSEL=C(0, 6),
            i_ODSEL=C(0, 6),
            i_PSDA=C(0, 4),
            i_DUTYDA=C(0, 4),
            i_FDLY=C(0, 4),
            o_CLKOUT=clk_out,
            o_LOCK=locked)


@dataclass(frozen=True)
class AroraPll(SettablePll):
    """``PLLA`` of a GW5A-25A, with internal feedback: ``input / idiv * mdiv / odiv``.

    Within the limits that Gowin's tools set for it: 19 to 400 MHz at the phase detector, 800 to
    1600 MHz of the oscillator. Faster clocks than 120 MHz are not offered, as :class:`GowinPll`
    has it. The open tools do not have the clock generators of a GW5AST-138C.
    """

    input_mhz: float
    idiv: int
    mdiv: int
    odiv: int

    outputs = {"PLLA": "CLKOUT0"}

    @classmethod
    def settings(cls, input_mhz, *, pad=False):
        """All settings within the limits of Gowin's tools."""
        del pad  # any pin will do
        for idiv in range(1, 65):
            if not 19 <= input_mhz / idiv <= 400:
                continue
            for mdiv in range(2, 129):
                if not 800 <= input_mhz / idiv * mdiv <= 1600:
                    continue
                for odiv in range(1, 129):
                    pll = cls(input_mhz, idiv, mdiv, odiv)
                    if 6.25 <= pll.output_mhz <= 120:
                        yield pll

    @property
    def output_mhz(self):
        """Frequency of the generated clock."""
        return self.input_mhz / self.idiv * self.mdiv / self.odiv

    @property
    def parameters(self):
        """Dividers."""
        return {"IDIV_SEL": self.idiv, "MDIV_SEL": self.mdiv, "ODIV0_SEL": self.odiv}

    def instance(self, clk_in, clk_out, locked):
        """Primitive behind the clock pin ``clk_in``."""
        from amaranth import C, Instance

        # apycula enables every output unless it is told otherwise, and cannot read its own dividers
        unused = {f"p_CLKOUT{n}_EN": "FALSE" for n in range(1, 7)}
        unused |= {f"p_ODIV{n}_SEL": 8 for n in range(1, 7)}
        return Instance(
            "PLLA",
            p_FCLKIN=f"{self.input_mhz:g}",
            p_FBDIV_SEL=1,
            p_MDIV_FRAC_SEL=0,
            **{f"p_{name}": value for name, value in self.parameters.items()},
            p_ODIV0_FRAC_SEL=0,
            p_CLKOUT0_EN="TRUE",
            **unused,
            p_CLKFB_SEL="INTERNAL",
            i_CLKIN=clk_in,
            i_CLKFB=C(0),
            i_RESET=C(0),
            i_PLLPWD=C(0),
            i_RESET_I=C(0),
            i_RESET_O=C(0),
            i_PSSEL=C(0, 3),
            i_PSDIR=C(0),
            i_PSPULSE=C(0),
            i_SSCPOL=C(0),
            i_SSCON=C(0),
            i_SSCMDSEL=C(0, 7),
            i_SSCMDSEL_FRAC=C(0, 3),
            i_MDCLK=C(0),
            i_MDOPC=C(0, 2),
            i_MDAINC=C(0),
            i_MDWDI=C(0, 8),
            o_CLKOUT0=clk_out,
            o_LOCK=locked)


@dataclass(frozen=True)
class Amd7Mmcm(Pll):
    """``MMCME2_BASE`` with a global buffer behind it: ``input / divclk * mult / divide``.

    Within the limits of speed grade -1 (DS181, DS189, DS187): 10 to 450 MHz at the phase detector,
    600 to 1200 MHz of the oscillator, and up to the 464 MHz of a global buffer. Of several settings
    the one with the fastest oscillator comes first, which has the least jitter (UG949).
    """

    input_mhz: float
    divclk: int
    mult: int
    divide: int

    @classmethod
    def settings(cls, input_mhz, *, pad=False):
        """All settings of whole numbers within the limits of the data sheets."""
        del pad  # any pin will do
        for divclk in range(1, 107):
            if not 10 <= input_mhz / divclk <= 450:
                continue
            for mult in range(64, 1, -1):
                if not 600 <= input_mhz / divclk * mult <= 1200:
                    continue
                for divide in range(1, 129):
                    pll = cls(input_mhz, divclk, mult, divide)
                    if 4.69 <= pll.output_mhz <= 464:
                        yield pll

    @property
    def output_mhz(self):
        """Frequency of the generated clock."""
        return self.input_mhz / self.divclk * self.mult / self.divide

    def instance(self, clk_in, clk_out, locked):
        """Primitive behind the clock pin ``clk_in``, and the buffer of the clock."""
        from amaranth import C, Instance, Module, Signal

        m = Module()
        feedback, clock = Signal(name="pll_feedback"), Signal(name="pll_clock")
        m.submodules.mmcm = Instance(
            "MMCME2_BASE",
            p_CLKIN1_PERIOD=round(1000 / self.input_mhz, 3),
            p_DIVCLK_DIVIDE=self.divclk,
            p_CLKFBOUT_MULT_F=float(self.mult),
            p_CLKOUT0_DIVIDE_F=float(self.divide),
            i_CLKIN1=clk_in,
            i_CLKFBIN=feedback,
            i_RST=C(0),
            i_PWRDWN=C(0),
            o_CLKFBOUT=feedback,
            o_CLKOUT0=clock,
            o_LOCKED=locked)
        m.submodules.buffer = Instance("BUFG", i_I=clock, o_O=clk_out)
        return m
