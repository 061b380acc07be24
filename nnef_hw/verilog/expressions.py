"""Operators of RTLIL as Verilog expressions, each of exactly the bits that RTLIL says.

Verilog computes an expression in as many bits as the widest of what is around it, and as a signed
one if all of it is. So an operator stands within another one only where that changes no bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import Enum, auto

from nnef_hw.verilog.folding import low_bits
from nnef_hw.verilog.names import Names, is_private
from nnef_hw.verilog.rtlil import Bits, Cell, Module, Sig, Slice, references, width_of

__all__ = ["OPERATORS", "Context", "Expressions", "bare", "constant"]

_BINARY = {
    "$add": "+", "$sub": "-", "$mul": "*", "$and": "&", "$or": "|", "$xor": "^", "$eq": "==",
    "$ne": "!=", "$lt": "<", "$le": "<=", "$gt": ">", "$ge": ">=", "$shl": "<<", "$shr": ">>",
    "$sshr": ">>>", "$shift": ">>",
}  # fmt: skip
_UNARY = {
    "$neg": "-", "$not": "~", "$reduce_and": "&", "$reduce_or": "|", "$reduce_xor": "^",
    "$reduce_bool": "|",
}  # fmt: skip
_COMPARISONS = frozenset({"$eq", "$ne", "$lt", "$le", "$gt", "$ge"})
_REDUCTIONS = frozenset({"$reduce_and", "$reduce_or", "$reduce_xor", "$reduce_bool"})
_BITWISE = frozenset({"$and", "$or", "$xor"})
# Their low bits are those of the low bits of their operands.
_MODULAR = frozenset({"$add", "$sub", "$mul", "$neg", "$shl"})
OPERATORS = _BINARY.keys() | _UNARY.keys() | {"$mux"}


class Context(Enum):
    """Where an expression stands.

    ``WHOLE``: it is all that is assigned. ``SAME``: as wide as what it is assigned to, and its sign
    does not matter. ``ALONE``: its own operands decide its width. ``INSIDE``: anywhere else; wider
    contexts add zeros.
    """

    WHOLE = auto()
    SAME = auto()
    ALONE = auto()
    INSIDE = auto()


def constant(digits: str, *, signed: bool = False) -> str:
    """Return a constant with its width: short numbers in decimal."""
    width = len(digits)
    if "x" in digits or "z" in digits:
        return f"{width}'b{digits}"
    value = int(digits, 2)
    if width == 1 and not signed:
        return f"1'b{value}"
    if signed and digits[0] == "1":
        if value == 1 << (width - 1):
            return f"{width}'sh{value:x}"
        return f"-{width}'sd{(1 << width) - value}"
    if width > 32:
        return f"{width}'{'s' if signed else ''}h{value:x}"
    return f"{width}'{'s' if signed else ''}d{value}"


class Expressions:
    """Writes values of a module.

    Parameters
    ----------
    module, names
        Whose, and what its wires are called.
    declare
        Called for a wire that is no input or register, before its name is written.
    """

    def __init__(self, module: Module, names: Names, declare: Callable[[str], None]) -> None:
        self._module = module
        self._names = names
        self._declare = declare
        self.cells: dict[str, Cell] = {}
        for cell in module.cells:
            if cell.kind in OPERATORS and cell.ports["Y"]:
                (result,) = cell.ports["Y"]
                assert isinstance(result, Slice)
                self.cells[result.wire] = cell
        self.uses = Counter(references(module))

    def text(self, sig: Sig, context: Context, width: int | None = None) -> str:
        """Write a value; ``width`` is that of what it is assigned to."""
        return bare(self._value(sig, context, width or width_of(sig)))

    def nested(self, sig: Sig, context: Context = Context.INSIDE) -> str:
        """Write a value as an operand: with parentheses, if it is an operation."""
        return self._value(sig, context, width_of(sig))

    def operation(self, cell: Cell, context: Context, width: int) -> str | None:
        """Write the expression of an operator, its low bits; None if that cannot stand here."""
        kind = cell.kind
        if kind == "$mux":
            return self._choice(cell, context, width)
        if kind in _COMPARISONS:
            return f"({self._operands(cell, _is_signed(cell))})"
        result = cell.number("Y_WIDTH") if "Y_WIDTH" in cell.parameters else width
        if kind in _REDUCTIONS:
            return f"({_prefixed(_UNARY[kind], self.nested(cell.ports['A'], Context.ALONE))})"
        if kind == "$not":
            if result == 1:
                return _prefixed("!", self.nested(cell.ports["A"]))
            if width < result or context is Context.INSIDE:
                return None
            return _prefixed("~", self.nested(cell.ports["A"]))
        if kind in _BITWISE:
            if width < result and context in {Context.ALONE, Context.INSIDE}:
                return None
            inner = Context.SAME if context in {Context.WHOLE, Context.SAME} else Context.INSIDE
            return f"({self._chain(cell, inner, width)})"
        if context is Context.WHOLE:
            return f"({self._arithmetic(cell)})"
        if context is Context.SAME and kind in _MODULAR and not _is_signed(cell):
            widths = [cell.number(f"{port}_WIDTH") for port in "AB" if port in cell.ports]
            if all(each <= width for each in widths):
                return f"({self._arithmetic(cell)})"
        return None

    def word(self, sig: Sig, characters: int = 24) -> str:
        """Return words for a value, to build names with; empty if there are no short ones."""
        words = []
        for part in sig:
            if isinstance(part, Bits):
                value = int(part.digits.replace("x", "0").replace("z", "0"), 2)
                words += [str(value)] if value or len(sig) == 1 else []
            else:
                name = self.describe(part.wire)
                wire = self._module.wires[part.wire]
                if part.width < wire.width:
                    name += f"_{part.low}" if part.width == 1 else ""
                words.append(name)
        text = "_".join(dict.fromkeys(words)) or "0"
        return text if len(text) <= characters else ""

    def describe(self, wire: str) -> str:
        """Return a wire's name, or what it would be called."""
        if not is_private(wire) or wire not in self.cells:
            try:
                return self._names.of(wire)
            except KeyError:
                return ""
        cell = self.cells[wire]
        operands = {port: self.word(sig) for port, sig in cell.ports.items() if port != "Y"}
        return self._names.expression(cell, operands)

    def _value(self, sig: Sig, context: Context, width: int) -> str:
        if not sig:
            return "1'b0"
        if len(sig) == 1:
            return self._part(sig[0], context, width)
        texts = []
        position = 0
        while position < len(sig):
            part, count = sig[position], 1
            if part.width == 1 and isinstance(part, Slice):
                while position + count < len(sig) and sig[position + count] == part:
                    count += 1
            text = bare(self._part(part, Context.ALONE, part.width))
            texts.append(f"{{{count}{{{text}}}}}" if count > 1 else text)
            position += count
        if len(texts) == 1:
            return texts[0]
        return f"{{{', '.join(texts)}}}"

    def _part(self, part: Slice | Bits, context: Context, width: int) -> str:
        if isinstance(part, Bits):
            return constant(part.digits)
        wire = self._module.wires[part.wire]
        if is_private(part.wire) and part.low == 0:
            inlined = self._inlined(part, context, min(width, part.width))
            if inlined is not None:
                return inlined
        self._declare(part.wire)
        name = self._names.of(part.wire)
        if part.width < wire.width:
            high = part.low + part.width - 1
            return f"{name}[{high}:{part.low}]" if part.width > 1 else f"{name}[{high}]"
        return f"$unsigned({name})" if wire.signed and context is Context.INSIDE else name

    def _inlined(self, part: Slice, context: Context, width: int) -> str | None:
        cell = self.cells.get(part.wire)
        if cell is None:
            return None
        is_cheap = cell.kind == "$not" and width == 1 and len(cell.ports["A"]) == 1
        is_cheap = is_cheap and self._is_named(cell.ports["A"])
        if self.uses[part.wire] > 1 and not is_cheap:
            return None
        if part.width < self._module.wires[part.wire].width and (
            cell.kind not in _MODULAR | _BITWISE | {"$mux", "$shr", "$sshr", "$shift"}
        ):
            return None
        return self.operation(cell, context, width)

    def _is_named(self, sig: Sig) -> bool:
        return all(isinstance(x, Slice) and not is_private(x.wire) for x in sig)

    def _choice(self, cell: Cell, context: Context, width: int) -> str | None:
        is_assigned = context in {Context.WHOLE, Context.SAME}
        if width < cell.number("WIDTH") and not is_assigned:
            return None
        inner = Context.SAME if is_assigned else Context.INSIDE
        chosen, other = (self.nested(low_bits(cell.ports[port], width), inner) for port in "BA")
        return f"({self.nested(cell.ports['S'], Context.ALONE)} ? {chosen} : {other})"

    def _chain(self, cell: Cell, context: Context, width: int) -> str:
        """Write a bitwise operator; operands that are the same operator need no parentheses."""
        sign = _BINARY[cell.kind]
        texts = []
        for port in "AB":
            sig = low_bits(cell.ports[port], width)
            text = self.nested(sig, context)
            part = sig[0] if len(sig) == 1 else None
            if isinstance(part, Slice) and text.startswith("("):
                inner = self.cells.get(part.wire)
                if inner is not None and inner.kind == cell.kind:
                    text = bare(text)
            texts.append(text)
        return f" {sign} ".join(texts)

    def _arithmetic(self, cell: Cell) -> str:
        kind = cell.kind
        if kind == "$neg":
            return _prefixed("-", self._operand(cell.ports["A"], _is_signed(cell)))
        if kind in {"$shl", "$shr", "$sshr", "$shift"}:
            shifted = self._operand(cell.ports["A"], _is_signed(cell))
            sign = ">>>" if kind == "$shift" and _is_signed(cell) else _BINARY[kind]
            return f"{shifted} {sign} {self._amount(cell.ports['B'])}"
        return self._operands(cell, _is_signed(cell))

    def _amount(self, sig: Sig) -> str:
        """Write by how much is shifted."""
        if len(sig) == 1 and isinstance(sig[0], Bits):
            return str(int(sig[0].digits, 2))
        return self.nested(sig, Context.ALONE)

    def _operands(self, cell: Cell, signed: bool) -> str:
        sigs = [cell.ports[port] for port in "AB"]
        most = max(map(width_of, sigs))
        a, b = (self._operand(_extended(sig, most, signed), signed) for sig in sigs)
        return f"{a} {_BINARY[cell.kind]} {b}"

    def _operand(self, sig: Sig, signed: bool) -> str:
        if not signed:
            return self.nested(sig)
        if len(sig) == 1:
            part = sig[0]
            if isinstance(part, Bits):
                return constant(part.digits, signed=True)
            wire = self._module.wires[part.wire]
            if wire.signed and part.width == wire.width and not is_private(part.wire):
                return self.nested(sig, Context.ALONE)
        return f"$signed({self.text(sig, Context.ALONE)})"


def _prefixed(sign: str, operand: str) -> str:
    """Write a unary operator; two in a row would be read as another one."""
    return f"{sign}({operand})" if operand[0] in "!~&|^-" else f"{sign}{operand}"


def _is_signed(cell: Cell) -> bool:
    return cell.parameters["A_SIGNED"] == "1"


def bare(text: str) -> str:
    """Take off the parentheses around all of a text."""
    if not text.startswith("("):
        return text
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if not depth:
            return text[1:-1] if position == len(text) - 1 else text
    return text


def _extended(sig: Sig, width: int, signed: bool) -> Sig:
    """Return a constant in more bits, and anything else as it is."""
    if not all(isinstance(part, Bits) for part in sig):
        return sig
    digits = "".join(part.digits for part in sig if isinstance(part, Bits)) or "0"
    return (Bits((digits[0] if signed else "0") * (width - len(digits)) + digits),)
