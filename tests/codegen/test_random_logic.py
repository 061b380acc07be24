# amaranth: UnusedElaboratable=no
"""Random logic is the same as Verilog, under Icarus, and in Amaranth's own simulator."""

import subprocess

import numpy as np
import pytest
from amaranth import C, Cat, Module, Mux, Signal
from amaranth.hdl import Shape
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from simulators import run_benches

from nnef_hw.codegen.verilog import to_verilog

OPERANDS, RESULTS, CYCLES = 6, 24, 60


class RandomLogic(wiring.Component):
    """Expressions, registers and choices of random widths and signs."""

    def __init__(self, rng):
        self.seed = int(rng.integers(1 << 32))
        ports = {"wide": In(40)}
        for n in range(OPERANDS):
            ports[f"a{n}"] = In(Shape(int(rng.integers(1, 9)), bool(rng.integers(2))))
        for n in range(RESULTS):
            ports[f"y{n}"] = Out(Shape(int(rng.integers(1, 20)), bool(rng.integers(2))))
        super().__init__(ports)

    def expression(self, depth):
        rng = self.rng
        if not depth or rng.random() < 0.1:
            if rng.random() < 0.2:
                return C(
                    int(rng.integers(-9, 10)), Shape(int(rng.integers(1, 6)), rng.random() < 0.5)
                )
            return self.leaves[rng.integers(len(self.leaves))]
        a, b, c = (self.expression(depth - 1) for _ in range(3))
        kind = rng.integers(16)
        if kind < 8:
            return [a + b, a - b, a & b, a | b, a ^ b, ~a, -a, a[:6] * b[:5]][kind]
        if kind < 11:
            return [a == b, a < b, a >= b][kind - 8]
        if kind == 11:
            return Mux(c, a, b)
        if kind == 12:
            return a >> b.as_unsigned()[:3]
        if kind == 13:
            return (a[:10] << b.as_unsigned()[:2]).as_signed() >> int(rng.integers(4))
        if kind == 14:
            return Cat(a, b)[int(rng.integers(len(a))) :]
        return [a.all(), a.any(), a.xor(), a.bit_select(b.as_unsigned()[:3], 2)][rng.integers(4)]

    def elaborate(self, platform):
        m = Module()
        rng = self.rng = np.random.default_rng(self.seed)
        self.leaves = [getattr(self, f"a{n}") for n in range(OPERANDS)] + [self.wide]
        for n in range(RESULTS):
            result = getattr(self, f"y{n}")
            values = [self.expression(int(rng.integers(1, 4))) for _ in range(4)]
            conditions = [self.expression(2).bool() for _ in range(2)]
            domain = m.d.sync if n % 2 else m.d.comb
            if n % 3 == 0:
                domain += result.eq(values[0])
                continue
            if n % 3 == 1:
                with m.If(conditions[0]):
                    domain += result.eq(values[0])
                    with m.If(conditions[1]):
                        domain += result[: max(1, len(result) // 2)].eq(values[1])
                with m.Elif(conditions[1]):
                    pass
                with m.Else():
                    domain += result.eq(values[2])
                continue
            named = Signal.like(values[0], name=f"named{n}")
            m.d.comb += named.eq(values[0])
            self.leaves.append(named)
            with m.Switch(Cat(*conditions, self.a0, self.a1, self.a2)[:3]):
                with m.Case(0):
                    domain += result.eq(named)
                with m.Case(1, 2):
                    domain += result.eq(values[1])
                with m.Case(3):
                    pass
                with m.Default():
                    domain += result.eq(values[2])
        return m


def vectors(component, rng):
    """Return what every input gets in every cycle: extremes, then noise."""
    inputs = {"wide": component.wide} | {
        f"a{n}": getattr(component, f"a{n}") for n in range(OPERANDS)
    }
    rows = []
    for cycle in range(CYCLES):
        row = {}
        for name, signal in inputs.items():
            width = len(signal)
            noise = int(rng.integers(0, 1 << min(width, 62))) & ((1 << width) - 1)
            row[name] = {0: 0, 1: (1 << width) - 1, 2: 1 << (width - 1)}.get(cycle, noise)
        rows.append(row)
    return inputs, rows


@pytest.mark.icarus
@pytest.mark.parametrize("case", range(8))
def test_random_logic_is_the_same_in_verilog(case, rng, tmp_path):
    component = RandomLogic(rng)
    inputs, rows = vectors(component, rng)
    outputs = [getattr(component, f"y{n}") for n in range(RESULTS)]
    expected = []

    async def drive(ctx):
        for row in rows:
            for name, value in row.items():
                ctx.set(inputs[name].as_unsigned(), value)
            await ctx.delay(1e-9)
            expected.append([ctx.get(output.as_unsigned()) for output in outputs])
            await ctx.tick()

    run_benches(component, drive)

    text = to_verilog(component)
    names = [*inputs, *(f"y{n}" for n in range(RESULTS))]
    declared = [f"reg [{len(x) - 1}:0] {name} = 0;" for name, x in inputs.items()]
    declared += [f"wire [{len(x) - 1}:0] y{n};" for n, x in enumerate(outputs)]
    steps = []
    for row in rows:
        steps += [f"{name} = {len(inputs[name])}'h{value:x};" for name, value in row.items()]
        shown = ", ".join(f"y{n}" for n in range(RESULTS))
        steps.append(f'#1 $display("{" ".join(["%0d"] * RESULTS)}", {shown}); clk = 1; #1 clk = 0;')
    bench = "\n".join([
        "module bench;", "reg clk = 0;", *declared,
        f"top top (.clk(clk), .rst(1'b0), {', '.join(f'.{name}({name})' for name in names)});",
        "initial begin", *steps, "$finish;", "end", "endmodule",
    ])  # fmt: skip
    (tmp_path / "bench.v").write_text(text + bench)
    program = tmp_path / "bench.vvp"
    compiled = ["iverilog", "-g2012", "-s", "bench", "-o", program, tmp_path / "bench.v"]
    subprocess.run(compiled, check=True)
    run = subprocess.run(["vvp", "-n", program], capture_output=True, text=True, check=True)
    found = [[int(word) for word in line.split()] for line in run.stdout.splitlines() if line]
    for cycle, (row, wanted) in enumerate(zip(found, expected, strict=True)):
        differ = [f"y{n}" for n in range(RESULTS) if row[n] != wanted[n]]
        assert not differ, (cycle, rows[cycle], row, wanted)
