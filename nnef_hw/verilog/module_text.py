"""A module of RTLIL as the Verilog that an engineer would write."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from itertools import pairwise

from nnef_hw.verilog.expressions import OPERATORS, Context, Expressions, bare, constant
from nnef_hw.verilog.folding import bits, joined
from nnef_hw.verilog.names import Directions, Names, identifier, is_private
from nnef_hw.verilog.rtlil import (
    Assign,
    Bits,
    Cell,
    Memory,
    Module,
    Process,
    Sig,
    Slice,
    Wire,
    width_of,
)
from nnef_hw.verilog.statements import INDENT, Body, Statements, merged, without_hold

__all__ = ["module_text"]

COLUMNS = 100
_PORTS = ("$memrd_v2", "$memwr_v2", "$meminit_v2")


def module_text(
    module: Module,
    name: str,
    ports: Mapping[str, str],
    children: Mapping[str, str],
    directions: Directions,
    comment: str = "",
) -> str:
    """Write a module.

    Parameters
    ----------
    module
        The parsed module. What reaches no output, instance or memory is left out.
    name
        Name of the module.
    ports
        What its ports hold, in their order; those that are not among them stand first.
    children
        Names of the modules that it instantiates, where they are not its cells' own.
    directions
        Directions of the ports of these modules.
    comment
        Lines above it.
    """
    return _Writer(module, children, directions).write(name, ports, comment)


class _Writer:
    def __init__(self, module: Module, children: Mapping[str, str], directions: Directions) -> None:
        self.module = module
        self.children = children
        self.directions = directions
        self.names = Names(module, directions)
        self.expressions = Expressions(module, self.names, self.declare)
        self.statements = Statements(module, self.names, self.expressions)
        self.processes = {process.target: process for process in module.processes}
        self.flip_flops: dict[str, Cell] = {}
        self.reads: dict[str, Cell] = {}
        self.instances = [cell for cell in module.cells if cell.kind.startswith("\\")]
        self.instance_wires: dict[str, Cell] = {}
        for cell in module.cells:
            if cell.kind == "$dff":
                self.flip_flops[_wire(cell.ports["Q"])] = cell
            elif cell.kind == "$memrd_v2":
                self.reads[_wire(cell.ports["DATA"])] = cell
            elif cell.kind not in OPERATORS and cell.kind not in _PORTS and cell.kind[0] == "$":
                raise ValueError(f"no component may need a cell {cell.kind} of RTLIL")
        for cell in self.instances:
            for sig in cell.ports.values():
                if len(sig) == 1 and isinstance(sig[0], Slice):
                    self.instance_wires.setdefault(sig[0].wire, cell)
        self.done: set[str] = set()
        self.wanted: list[str] = []
        self.registers: list[str] = []
        self.declarations: dict[str, str] = {}
        self.order = {wire: n for n, wire in enumerate(module.wires)}
        self.wires: list[str] = []
        for wire in self.flip_flops:
            if is_private(wire):
                self.names.register(wire)

    def write(self, name: str, ports: Mapping[str, str], comment: str) -> str:
        """Return the text."""
        memories = [line for key in self.module.memories for line in self.memory(key)]
        writes = [
            line
            for cell in self.module.cells
            if cell.kind == "$memwr_v2"
            for line in self.write_port(cell)
        ]
        instances = [line for cell in self.instances for line in self.instance(cell)]
        for wire in self.module.wires.values():
            if wire.flow == "output" and wire.width:
                self.declare(wire.name)
        clocked = self.clocked()
        head = self.head(name, ports)
        declared = sorted(
            self.declarations, key=lambda wire: (wire not in self.registers, self.order[wire])
        )
        declarations = [self.declarations[wire] for wire in declared]
        blocks = [declarations, memories, self.wires, *clocked, writes, instances]
        body = "\n\n".join(
            "\n".join(part for line in block for part in _wrapped(f"{INDENT}{line}"))
            for block in blocks
            if block
        )
        above = "".join(f"// {line}\n" for line in comment.splitlines())
        return f"{above}{head}{body}\nendmodule\n"

    def head(self, name: str, notes: Mapping[str, str]) -> str:
        """Write the name and the ports."""
        order = {port: n for n, port in enumerate(notes)}
        wires = [wire for wire in self.module.wires.values() if wire.flow and wire.width]
        wires.sort(key=lambda wire: order.get(wire.name[1:], -1))
        lines = []
        for wire in wires:
            is_register = wire.name in self.registers
            begin = _init(wire) if is_register else ""
            kind = " reg" if is_register else ""
            sign = " signed" if wire.signed else ""
            port = f"{wire.flow}{kind}{sign}{_range(wire.width)} {self.names.of(wire.name)}{begin}"
            lines.append((port, notes.get(wire.name[1:], "")))
        if not lines:
            return f"module {name};\n"
        listed = [
            f"{INDENT}{port}{',' * (n + 1 < len(lines))}{f'  // {note}' if note else ''}"
            for n, (port, note) in enumerate(lines)
        ]
        return "\n".join([f"module {name} (", *listed, ");", ""])

    def declare(self, wire: str) -> None:
        """Make sure that a wire is declared and has a driver, and what that needs before it."""
        if wire in self.done:
            return
        self.done.add(wire)
        if wire in self.flip_flops or (wire in self.reads and _is_clocked(self.reads[wire])):
            self.register(wire)
            return
        if wire in self.reads:
            cell = self.reads[wire]
            memory, address = self.read_word(cell)
            self.assign(wire, f"{memory}[{address}]", f"{memory}_data")
            return
        if self.module.wires[wire].flow == "input":
            return
        if wire in self.expressions.cells:
            self.operation(wire)
        elif wire in self.processes:
            self.choice(self.processes[wire])
        elif wire in self.instance_wires:
            if not self.module.wires[wire].flow:
                self.declarations[wire] = f"wire {self.declared(wire)};"
        elif wire in self.module.connects:
            value = self.expressions.text(self.module.connects[wire], Context.WHOLE)
            self.assign(wire, value)
        else:
            raise ValueError(f"wire {wire} has no driver")

    def declared(self, wire: str, wish: str = "value") -> str:
        """Return sign, range and name of a wire; it is named now if it was not."""
        item = self.module.wires[wire]
        sign = "signed " if item.signed else ""
        return f"{sign}{_range(item.width)[1:]} ".lstrip() + self.names.give(wire, wish)

    def assign(self, wire: str, value: str, wish: str = "value") -> None:
        """Declare a wire with its value, or assign it to an output."""
        if self.module.wires[wire].flow:
            self.wires.append(f"assign {self.names.of(wire)} = {value};")
        else:
            self.wires.append(f"wire {self.declared(wire, wish)} = {value};")

    def register(self, wire: str) -> None:
        """Declare a register; what it takes is written when all are known."""
        self.registers.append(wire)
        self.wanted.append(wire)
        item = self.module.wires[wire]
        wish = "value"
        if wire in self.reads:
            wish = f"{self.names.of(self.reads[wire].memory)}_data"
        if not item.flow:
            self.declarations[wire] = f"reg {self.declared(wire, wish)}{_init(item)};"

    def operation(self, wire: str) -> None:
        """Declare a wire with what an operator computes."""
        cell = self.expressions.cells[wire]
        width = self.module.wires[wire].width
        text = self.expressions.operation(cell, Context.WHOLE, width)
        assert text is not None, cell
        self.assign(wire, bare(text), self.expressions.describe(wire))

    def choice(self, process: Process) -> None:
        """Declare a wire with what a process without a clock assigns to it."""
        wire, width = process.target, self.module.wires[process.target].width
        cuts = sorted({0, width, *_cuts(process.body)})
        values = [
            self.statements.choice(process.body, Slice(wire, low, high - low))
            for low, high in pairwise(cuts)
        ]
        sig: Sig = ()
        for value in reversed(values):
            if isinstance(value, str):
                break
            sig += value
        else:
            self.assign(wire, self.expressions.text(joined(list(sig)), Context.WHOLE))
            return
        texts = [
            value if isinstance(value, str) else self.expressions.text(value, Context.ALONE)
            for value in reversed(values)
        ]
        self.assign(wire, bare(texts[0]) if len(texts) == 1 else f"{{{', '.join(texts)}}}")

    def clocked(self) -> list[list[str]]:
        """Write assignments to registers, those under the same conditions together."""
        bodies: dict[tuple[str, str], dict[str, Body]] = {}
        reads: list[list[str]] = []
        done = 0
        # What one register takes may need another one.
        while done < len(self.wanted):
            wire = self.wanted[done]
            done += 1
            if wire in self.reads:
                reads.append(self.read(self.reads[wire]))
                continue
            cell = self.flip_flops[wire]
            width = self.module.wires[wire].width
            data = cell.ports["D"]
            edge = "posedge" if cell.parameters["CLK_POLARITY"] == "1" else "negedge"
            clock = self.expressions.text(cell.ports["CLK"], Context.ALONE)
            body = self._next(wire, data, width)
            bodies.setdefault((edge, clock), {})[wire] = body
            self._visit(body)
        reset = "\\rst" if "\\rst" in self.module.wires else None
        blocks = []
        for (edge, clock), group in bodies.items():
            for body in merged([group[wire] for wire in sorted(group, key=self.order.__getitem__)]):
                lines = self.statements.clocked(body, reset)
                head = f"always @({edge} {clock})"
                if len(lines) == 1:
                    blocks.append([f"{head} {lines[0]}"])
                else:
                    inner = [f"{INDENT}{line}" for line in lines]
                    blocks.append([f"{head} begin", *inner, "end"])
        return [*blocks, *reads]

    def _next(self, wire: str, data: Sig, width: int) -> Body:
        """Return the assignments to a register, as statements."""
        part = data[0] if len(data) == 1 else None
        if isinstance(part, Slice) and is_private(part.wire) and part.wire in self.processes:
            process = self.processes[part.wire]
            body = _renamed(process.body, wire)
            return without_hold(body, wire, width)
        return [Assign(Slice(wire, 0, width), data)]

    def _visit(self, body: Body) -> None:
        """Declare all that statements read."""
        self.statements.lines(body)

    def memory(self, key: str) -> list[str]:
        """Write a memory, and what it begins with."""
        memory = self.module.memories[key]
        name = self.names.of(key)
        lines = [f"(* {item} *)" for item in _attributes(memory)]
        lines.append(f"reg{_range(memory.width)} {name} [0:{memory.depth - 1}];")
        for cell in self.module.cells:
            if cell.kind == "$meminit_v2" and cell.memory == key:
                lines += self.contents(name, memory, cell)
        return lines

    def contents(self, name: str, memory: Memory, cell: Cell) -> list[str]:
        """Write the initial words of a memory."""
        digits = "".join(part.digits for part in cell.ports["DATA"] if isinstance(part, Bits))
        width = memory.width
        words = [digits[n : n + width] for n in range(0, len(digits), width)][::-1]
        if not any("1" in word for word in words):
            index = self.names.unused("word")
            return [
                f"integer {index};",
                f"initial for ({index} = 0; {index} < {memory.depth}; {index} = {index} + 1)",
                f"{INDENT}{name}[{index}] = {width}'d0;",
            ]
        lines, line = ["initial begin"], INDENT
        for n, word in enumerate(words):
            text = f"{name}[{n}] = {width}'h{int(word, 2):0{-(-width // 4)}x};"
            if len(line) + len(text) > COLUMNS and line.strip():
                lines.append(line.rstrip())
                line = INDENT
            line += f"{text} "
        return [*lines, line.rstrip(), "end"]

    def write_port(self, cell: Cell) -> list[str]:
        """Write a write port, of whose word all is written at once, or parts of it."""
        address = self.expressions.text(cell.ports["ADDR"], Context.ALONE)
        word = f"{self.names.of(cell.memory)}[{address}]"
        data = cell.ports["DATA"]
        lines, width = [], width_of(data)
        parts = _same_bits(cell.ports["EN"])
        for bit, low, count in parts:
            enable = self.expressions.text(bit, Context.ALONE)
            own = bits(data, width - low - count, count)
            value = self.expressions.text(own, Context.WHOLE)
            place = word if len(parts) == 1 else f"{word}[{low + count - 1}:{low}]"
            lines.append(f"{INDENT}if ({enable}) {place} <= {value};")
        begin, end = ("", []) if len(parts) == 1 else (" begin", ["end"])
        return [f"always @({self._edge(cell)}){begin}", *lines, *end]

    def read(self, cell: Cell) -> list[str]:
        """Write a read port; it returns what was there before a write of the same cycle."""
        if "1" in cell.parameters["TRANSPARENCY_MASK"].partition("'")[2]:
            raise ValueError(f"a read port of {cell.memory} is transparent")
        memory, address = self.read_word(cell)
        value = f"{self.names.of(_wire(cell.ports['DATA']))} <= {memory}[{address}];"
        enable = cell.ports["EN"]
        if enable == (Bits("1"),):
            return [f"always @({self._edge(cell)}) {value}"]
        condition = self.expressions.text(enable, Context.ALONE)
        return [f"always @({self._edge(cell)})", f"{INDENT}if ({condition}) {value}"]

    def read_word(self, cell: Cell) -> tuple[str, str]:
        """Return names of the memory and the address that a port reads."""
        address = self.expressions.text(cell.ports["ADDR"], Context.ALONE)
        return self.names.of(cell.memory), address

    def _edge(self, cell: Cell) -> str:
        edge = "posedge" if cell.parameters["CLK_POLARITY"] == "1" else "negedge"
        return f"{edge} {self.expressions.text(cell.ports['CLK'], Context.ALONE)}"

    def instance(self, cell: Cell) -> list[str]:
        """Write an instance; outputs that nobody reads are left open."""
        kind = self.children.get(cell.kind[1:], cell.kind[1:])
        name = self.names.instances[cell.name]
        parameters = [f".{key}({_parameter(value)})" for key, value in cell.parameters.items()]
        lines = []
        for port in dict.fromkeys((*self.directions.get(cell.kind[1:], ()), *cell.ports)):
            if sig := cell.ports.get(port):
                value = "" if self.is_open(sig) else self.expressions.text(sig, Context.ALONE)
                lines.append(f"{INDENT}.{identifier(port)}({value})")
        head = f"{kind} #({', '.join(parameters)}) {name}" if parameters else f"{kind} {name}"
        texts = [f"{key} = {value}" for key, value in cell.attributes.items()]
        above = [f"(* {', '.join(texts)} *)"] if texts else []
        return [*above, f"{head} (", *(f"{line}," for line in lines[:-1]), *lines[-1:], ");"]

    def is_open(self, sig: Sig) -> bool:
        """Whether a value is an output that nobody reads."""
        part = sig[0]
        if not isinstance(part, Slice) or self.expressions.uses[part.wire] > 1:
            return False
        is_driven = any(
            part.wire in drivers
            for drivers in (self.expressions.cells, self.processes, self.flip_flops, self.reads)
        )
        return not is_driven and not self.module.wires[part.wire].flow


def _wire(sig: Sig) -> str:
    (part,) = sig
    assert isinstance(part, Slice)
    return part.wire


def _is_clocked(cell: Cell) -> bool:
    return cell.parameters["CLK_ENABLE"] == "1"


def _wrapped(line: str) -> list[str]:
    """Break a long line at spaces."""
    if len(line) <= COLUMNS:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(
        line.strip(),
        COLUMNS,
        initial_indent=indent,
        subsequent_indent=indent + 2 * INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _range(width: int) -> str:
    return f" [{width - 1}:0]" if width > 1 else ""


def _init(wire: Wire) -> str:
    return "" if wire.init is None else f" = {constant(wire.init, signed=wire.signed)}"


def _parameter(value: str) -> str:
    if "'" in value:
        width, _, digits = value.partition("'")
        return f"{width}'b{digits}"
    return value


def _attributes(memory: Memory) -> list[str]:
    """Write a memory's attributes for synthesis, the sort of memory last."""
    names = sorted(memory.attributes, key=lambda name: (name == "ram_style", name))
    text = ", ".join(f"{name} = {memory.attributes[name]}" for name in names)
    return [text] if text else []


def _cuts(body: Body) -> list[int]:
    found = []
    for statement in body:
        if isinstance(statement, Assign):
            found += [statement.target.low, statement.target.low + statement.target.width]
        else:
            for case in statement.cases:
                found += _cuts(case.body)
    return found


def _renamed(body: Body, wire: str) -> Body:
    """Return statements that assign to another wire."""
    return [
        Assign(statement.target._replace(wire=wire), statement.value)
        if isinstance(statement, Assign)
        else statement._replace(
            cases=[case._replace(body=_renamed(case.body, wire)) for case in statement.cases]
        )
        for statement in body
    ]


def _same_bits(sig: Sig) -> list[tuple[Sig, int, int]]:
    """Return the bits of a value, lowest first: each with its place and how often it repeats."""
    found: list[tuple[Sig, int, int]] = []
    width = width_of(sig)
    for place in range(width):
        bit = bits(sig, width - 1 - place, 1)
        if found and found[-1][0] == bit:
            _, low, count = found[-1]
            found[-1] = bit, low, count + 1
        else:
            found.append((bit, place, 1))
    return found
