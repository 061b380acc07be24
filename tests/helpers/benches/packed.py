"""Packed ECP5 netlists as nextpnr writes them, of random logic."""

PORTS = {
    "TRELLIS_COMB": {**dict.fromkeys(("A", "B", "C", "D", "FCI"), "input"),
                     "F": "output", "FCO": "output"},
    "TRELLIS_FF": {**dict.fromkeys(("CLK", "CE", "LSR", "DI", "M"), "input"), "Q": "output"},
    "TRELLIS_RAMW": {"A0": "input", "WDO0": "output"},
    "DP16KD": {"ADA0": "input", "DOA0": "output", "DOB0": "output"},
}  # fmt: skip
CLOCK = 1


class Packed:
    """Builds a packed netlist cell by cell; nets are numbers."""

    def __init__(self):
        self.cells = {}
        self.net = CLOCK

    @property
    def netlist(self):
        return {"modules": {"top": {"cells": self.cells}}}

    def wire(self):
        self.net += 1
        return self.net

    def cell(self, name, kind, pins, **more):
        connections = {port: [] for port in PORTS[kind]}
        connections |= {port: [bit] for port, bit in pins.items() if bit is not None}
        self.cells[name] = {
            "type": kind, "parameters": more.pop("parameters", {}), "attributes": more,
            "port_directions": PORTS[kind], "connections": connections,
        }  # fmt: skip

    def flip_flop(self, name, data=None, other=None, enable=None, reset=None, *, inverts=False):
        """Add a flip-flop behind a LUT beside it, or with data from anywhere; return its net."""
        out = self.wire()
        pins = {"CLK": CLOCK, "DI": data, "M": other, "CE": enable, "LSR": reset, "Q": out}
        muxes = {"CEMUX": "CE" if enable else "1", "LSRMUX": "INV" if inverts else "LSR"}
        self.cell(name, "TRELLIS_FF", pins, parameters=muxes)
        return out

    def lut(self, name, *inputs):
        out = self.wire()
        pins = dict(zip("ABCD", inputs, strict=False))
        self.cell(name, "TRELLIS_COMB", {**pins, "F": out})
        return out

    def chain(self, name, firsts, seconds):
        """Add an adder; return the nets of its sum."""
        carry, sums = None, []
        for n, (first, second) in enumerate(zip(firsts, seconds, strict=True)):
            out, following = self.wire(), self.wire() if n + 1 < len(firsts) else None
            pins = {"A": first, "B": second, "FCI": carry, "F": out, "FCO": following}
            self.cell(f"{name}{n // 2}$CCU2_COMB{n % 2}", "TRELLIS_COMB", pins,
                      parameters={"MODE": "CCU2"})  # fmt: skip
            sums.append(out)
            carry = following
        return sums

    def ram(self, name, *addresses):
        """Add a RAM in LUTs; return the nets that it gives."""
        outs = []
        for n in range(4):
            outs.append(self.wire())
            pins = dict(zip("ABCD", addresses, strict=True))
            self.cell(f"{name}$DPRAM_COMB{n}", "TRELLIS_COMB", {**pins, "F": outs[-1]},
                      parameters={"MODE": "DPRAM", "WREMUX": "WRE"})  # fmt: skip
        for n in range(2):
            self.cell(f"{name}$RAMW_BLOCK{n}", "TRELLIS_COMB", {},
                      parameters={"MODE": "RAMW_BLOCK"})  # fmt: skip
        self.cell(f"{name}$RAMW_SLICE", "TRELLIS_RAMW", {"A0": addresses[0]})
        return outs


def random_logic(rng, *, chains=12, luts=60, lone=40, rams=3, enables=3, resets=2):
    """Return a netlist of adders, LUTs and RAMs between registers with controls of some kinds."""
    packed = Packed()
    nets = [packed.flip_flop(f"seed{n}") for n in range(8)]
    controls = [None, None, *(packed.flip_flop(f"enable{n}") for n in range(enables))]
    clears = [None, None, *(packed.flip_flop(f"reset{n}") for n in range(resets))]

    def some(count):
        return [int(bit) for bit in rng.choice(nets[-60:], count)]

    def control():
        enable, reset = controls[rng.integers(len(controls))], clears[rng.integers(len(clears))]
        # the last of several resets is low where it acts
        return {"enable": enable, "reset": reset, "inverts": reset is clears[-1] is not None}

    for n in range(chains):
        width = 2 * int(rng.integers(1, 9))
        one = control()
        sums = packed.chain(f"chain{n}_", some(width), some(width))
        nets += [packed.flip_flop(f"sum{n}_{bit}", out, **one) for bit, out in enumerate(sums)]
    for n in range(luts):
        out = packed.lut(f"lut{n}", *some(int(rng.integers(1, 5))))
        nets.append(packed.flip_flop(f"q{n}", out, **control()) if rng.random() < 0.7 else out)
    nets += [packed.flip_flop(f"lone{n}", None, some(1)[0], **control()) for n in range(lone)]
    for n in range(rams):
        nets += packed.ram(f"ram{n}", *some(4))
    return packed
