"""Place and route the arrays of ResNet-8 alone, and print the clock that they reach.

All multiplications of MLPerf Tiny's image classifier, folded to 341 multipliers, with adder trees
and requantizers, but without windows: the part of the architecture that fills an ECP5-85F. Yosys
and nextpnr take half an hour on one core; ``--layers s2b,s1a`` takes some of the arrays only.
"""

from __future__ import annotations

import argparse
import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.arithmetic.numerics import Requant
from nnef_hw.boards import find_board
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.place.synthesis import synthesize

TARGET = find_board("ulx3s_85f")
GROUP_PRODUCTS = 16
ACC_BITS = 24


@dataclass(frozen=True, slots=True)
class Layer:
    """One array: channels, words of a window, its size, and the stages of its requantizer."""

    channels: int
    words: int
    lanes: int
    rows: int
    in_dsp: bool
    stages: int


LAYERS = {
    "conv1": Layer(16, 9, 3, 4, in_dsp=False, stages=4),
    "s1a": Layer(16, 36, 4, 16, in_dsp=True, stages=4),
    "s1b": Layer(16, 36, 4, 16, in_dsp=True, stages=4),
    "s2a": Layer(32, 36, 4, 8, in_dsp=False, stages=2),
    "s2b": Layer(32, 72, 4, 16, in_dsp=False, stages=2),
    "s2s": Layer(32, 4, 4, 1, in_dsp=True, stages=2),
    "s3a": Layer(64, 72, 4, 8, in_dsp=False, stages=1),
    "s3b": Layer(64, 144, 4, 16, in_dsp=False, stages=1),
    "s3s": Layer(64, 8, 4, 1, in_dsp=True, stages=1),
    "fc": Layer(10, 64, 1, 1, in_dsp=True, stages=1),
}


class Arrays(wiring.Component):  # type: ignore[misc]
    """Arrays that are fed with noise; one pin depends on all of their codes."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        super().__init__({"x": In(1), "y": Out(1)})

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the arrays side by side."""
        m = Module()
        rng = np.random.default_rng(1)
        noise = Signal(16, init=1)
        m.d.sync += noise.eq(Cat(noise[15] ^ noise[13] ^ self.x, noise))
        parities = []
        for name in self.names:
            array, requantizer = _components(LAYERS[name], rng)
            m.submodules[name] = array
            m.submodules[f"{name}_requantize"] = requantizer
            wiring.connect(m, array.o, requantizer.i)
            item = Signal(len(array.i.payload.as_value()) + 1, name=f"{name}_item")
            codes = Signal.like(requantizer.o.payload.as_value(), name=f"{name}_codes")
            parity = Signal(name=f"{name}_parity")
            m.d.sync += [
                item.eq(Cat(noise[3], item)),
                codes.eq(requantizer.o.payload.as_value()),
                parity.eq(codes.xor()),
            ]
            m.d.comb += [
                array.i.payload.as_value().eq(item),
                array.i.valid.eq(item[-1]),
                requantizer.o.ready.eq(1),
            ]
            parities.append(parity)
        m.d.sync += self.y.eq(Cat(parities).xor())
        return m


def _components(layer: Layer, rng: np.random.Generator) -> tuple[Any, Any]:
    device = TARGET.device
    array = parts.SystolicArray(
        channels=layer.channels, words=layer.words, lanes=layer.lanes, rows=layer.rows,
        group_rows=min(layer.rows, GROUP_PRODUCTS // layer.lanes), x_bits=8, x_signed=True,
        w_bits=8, acc_bits=ACC_BITS,
        in_dsp=layer.rows * layer.lanes if layer.in_dsp else 0, kept_passes=2,
        weights=parts.WeightRom(ram=device.ram), weight_delay=device.weight_delay,
    )  # fmt: skip
    weights = rng.integers(-127, 128, (layer.channels, layer.words, layer.lanes))
    mult = tuple(rng.integers(20_000, 1 << 16, layer.channels).tolist())
    requantizer = parts.Requantizer(
        channels=layer.channels, acc_bits=ACC_BITS, factor_bits=16, digit_bits=device.digit_bits,
        stages=layer.stages, bits=8, signed=True,
    )  # fmt: skip
    requant = Requant(mult, shift=24, zero_point=-3, lo=-128, hi=127)
    bias = rng.integers(-9999, 9999, layer.channels).tolist()
    return array.build(weights=weights), requantizer.build(requant=requant, bias=bias)


def main() -> None:
    """Build, print what was reached."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--layers", default=",".join(LAYERS), help="names, separated by commas")
    parser.add_argument("--freq", type=float, default=100.0, help="MHz that nextpnr aims at")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/bench_clock"))
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")

    options.out.mkdir(parents=True, exist_ok=True)
    source = options.out / "arrays.v"
    source.write_text(to_verilog(Arrays(options.layers.split(","))))
    result = synthesize(
        source, top="top", family=TARGET.device.family, device=TARGET.part, package=TARGET.package,
        out_dir=options.out, frequency_mhz=options.freq, seeds=[options.seed], bitstream=False,
    )  # fmt: skip
    used = {name: resource.used for name, resource in result.resources.items()}
    print(f"{result.fmax_mhz} MHz; {used}; seconds: {result.seconds}")
    print("critical path:")
    for path in json.loads((options.out / result.files["report"]).read_text())["critical_paths"]:
        if path["from"].startswith("posedge") and path["to"].startswith("posedge"):
            for hop in path["path"]:
                if hop["delay"] > 0.2:
                    places = f"{hop['from']['cell']} -> {hop['to']['cell']}"
                    print(f"  {hop['type']:<10} {hop['delay']:5.2f} ns  {places}")


if __name__ == "__main__":
    main()
