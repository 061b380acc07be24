"""Operators of RTLIL whose results are known, or are one of their operands, removed."""

from __future__ import annotations

from nnef_hw.verilog.rtlil import Assign, Bits, Case, Cell, Module, Sig, Slice, Switch, width_of

__all__ = ["bits", "fold_constants", "joined", "low_bits"]


def bits(sig: Sig, first: int, width: int) -> Sig:
    """Return ``width`` bits of a value, from ``first`` on, the most significant being 0."""
    found: list[Slice | Bits] = []
    for part in sig:
        begin, end = max(first, 0), min(first + width, part.width)
        if begin < end:
            if isinstance(part, Bits):
                found.append(Bits(part.digits[begin:end]))
            else:
                found.append(Slice(part.wire, part.low + part.width - end, end - begin))
        first -= part.width
        width += min(first, 0)
        first = max(first, 0)
    return tuple(found)


def low_bits(sig: Sig, width: int) -> Sig:
    """Return the least significant bits of a value."""
    return bits(sig, width_of(sig) - width, width)


def fold_constants(module: Module) -> None:
    """Replace what operators of constants give, and operators that change nothing."""
    _Folder(module).fold()


class _Folder:
    def __init__(self, module: Module) -> None:
        self.module = module
        self.cells: dict[str, Cell] = {}
        for cell in module.cells:
            if cell.ports.get("Y") and not cell.kind.startswith("\\"):
                part = cell.ports["Y"][0]
                assert isinstance(part, Slice)
                self.cells[part.wire] = cell
        self.known: dict[str, Sig | None] = {}

    def fold(self) -> None:
        module = self.module
        kept = []
        for cell in module.cells:
            cell.ports = {
                port: sig if port in {"Y", "Q"} else self.resolved(sig)
                for port, sig in cell.ports.items()
            }
        for cell in module.cells:
            result = cell.ports.get("Y", ())
            part = result[0] if result and not cell.kind.startswith("\\") else None
            value = self.value(part.wire) if isinstance(part, Slice) else None
            if value is None:
                kept.append(cell)
            elif isinstance(part, Slice) and not part.wire.startswith("$"):
                module.connects[part.wire] = value
        module.cells = kept
        for process in module.processes:
            process.body = self.body(process.body)
        module.connects = {wire: self.resolved(sig) for wire, sig in module.connects.items()}

    def body(self, body: list[Assign | Switch]) -> list[Assign | Switch]:
        found: list[Assign | Switch] = []
        for statement in body:
            value = self.resolved(statement.value)
            if isinstance(statement, Assign):
                found.append(Assign(statement.target, value))
                continue
            cases = [Case(case.patterns, self.body(case.body)) for case in statement.cases]
            cases = _possible(value, cases)
            if cases and not cases[0].patterns:
                found += cases[0].body
            elif any(case.body for case in cases):
                found.append(Switch(value, cases))
        return found

    def resolved(self, sig: Sig) -> Sig:
        """Return a value with all that is known put in."""
        parts: list[Slice | Bits] = []
        for part in sig:
            known = self.value(part.wire) if isinstance(part, Slice) else None
            if known is None or isinstance(part, Bits):
                parts.append(part)
            else:
                parts += bits(known, width_of(known) - part.low - part.width, part.width)
        return joined(parts)

    def value(self, wire: str) -> Sig | None:
        """Return the value of an operator's wire, if the operator need not compute it."""
        if wire not in self.known:
            self.known[wire] = None
            cell = self.cells.get(wire)
            if cell is not None:
                operands = {
                    port: self.resolved(sig) for port, sig in cell.ports.items() if port != "Y"
                }
                self.known[wire] = self.folded(cell, operands)
        return self.known[wire]

    def folded(self, cell: Cell, operands: dict[str, Sig]) -> Sig | None:
        kind = cell.kind
        width = width_of(cell.ports["Y"])
        a, b = operands.get("A", ()), operands.get("B", ())
        if kind == "$mux":
            chosen = _digits(operands["S"])
            if a == b:
                return a
            return None if chosen is None else (b if chosen == "1" else a)
        is_signed = cell.parameters["A_SIGNED"] == "1"
        if kind in {"$shl", "$sshr"} and _digits(b) is not None and not int(_digits(b) or "0", 2):
            return resized(a, width, signed=is_signed)
        if is_signed:
            return None
        ones, zeros = (Bits("1" * width),), (Bits("0" * width),)
        if kind == "$not":
            digits = _digits(a)
            if digits is not None:
                return (Bits(digits.translate({48: "1", 49: "0"})),)
            return self.negated(a) if width == 1 else None
        if kind in {"$and", "$or"} and width_of(a) == width_of(b) == width:
            absorbing, neutral = (zeros, ones) if kind == "$and" else (ones, zeros)
            if absorbing in {a, b}:
                return absorbing
            return b if a == neutral else a if b == neutral else None
        if kind in {"$eq", "$ne"}:
            return _equality(kind, a, b)
        if kind in {"$lt", "$le", "$gt", "$ge"} and _digits(b) is not None:
            return _bounded(kind, width_of(a), int(_digits(b) or "0", 2))
        amount = _digits(b)
        if kind == "$shr" and amount is not None:
            return resized(bits(a, 0, max(width_of(a) - int(amount, 2), 0)), width, signed=False)
        if kind in {"$reduce_and", "$reduce_or", "$reduce_bool"}:
            return _reduced(kind, a)
        return None

    def negated(self, sig: Sig) -> Sig | None:
        """Return the bit whose negation a bit is."""
        part = sig[0]
        cell = self.cells.get(part.wire) if isinstance(part, Slice) else None
        if cell is not None and cell.kind == "$not" and width_of(cell.ports["Y"]) == 1:
            return self.resolved(cell.ports["A"])
        return None


def resized(sig: Sig, width: int, *, signed: bool) -> Sig:
    """Return a value in another width: its low bits, or with zeros or its sign ahead of it."""
    missing = width - width_of(sig)
    if missing <= 0:
        return low_bits(sig, width)
    ahead = bits(sig, 0, 1) if signed and sig else (Bits("0"),)
    return joined([*(ahead * missing), *sig])


def joined(parts: list[Slice | Bits]) -> Sig:
    """Join parts that lie side by side."""
    found: list[Slice | Bits] = []
    for part in parts:
        last = found[-1] if found else None
        if isinstance(part, Bits) and isinstance(last, Bits):
            found[-1] = Bits(last.digits + part.digits)
        elif (
            isinstance(part, Slice)
            and isinstance(last, Slice)
            and last.wire == part.wire
            and last.low == part.low + part.width
        ):
            found[-1] = Slice(part.wire, part.low, part.width + last.width)
        else:
            found.append(part)
    return tuple(found)


def _digits(sig: Sig) -> str | None:
    """Return the bits of a constant."""
    if not all(isinstance(part, Bits) for part in sig):
        return None
    digits = "".join(part.digits for part in sig if isinstance(part, Bits))
    return None if "x" in digits else digits or "0"


def _possible(value: Sig, cases: list[Case]) -> list[Case]:
    """Return the cases that may match; one that does in any case comes without patterns, last."""
    digits = "".join(x.digits if isinstance(x, Bits) else "?" * x.width for x in value)
    found: list[Case] = []
    for case in cases:
        patterns = tuple(
            pattern
            for pattern in case.patterns
            if all({"-", "?"} & {p, d} or p == d for p, d in zip(pattern, digits, strict=True))
        )
        certain = any(
            all(p in {"-", d} for p, d in zip(pattern, digits, strict=True)) for pattern in patterns
        )
        if certain or not case.patterns:
            return [*found, Case((), case.body)]
        if patterns:
            found.append(Case(patterns, case.body))
    return found


def _reduced(kind: str, sig: Sig) -> Sig | None:
    """Return all or any of some bits, if that is known; of no bits, all are set and none is."""
    deciding, neutral = ("0", "1") if kind == "$reduce_and" else ("1", "0")
    digits = {digit for part in sig if isinstance(part, Bits) for digit in part.digits}
    unknown = tuple(part for part in sig if isinstance(part, Slice))
    if deciding in digits:
        return (Bits(deciding),)
    if not unknown:
        return (Bits(neutral),)
    return unknown if width_of(unknown) == 1 else None


def _bounded(kind: str, width: int, limit: int) -> Sig | None:
    """Return how a number of so many bits compares with one beyond or at the end of its range."""
    most = (1 << width) - 1
    decided = {
        "$lt": (limit > most, limit == 0),
        "$le": (limit >= most, False),
        "$gt": (False, limit >= most),
        "$ge": (limit == 0, limit > most),
    }[kind]
    if not any(decided):
        return None
    return (Bits(str(int(decided[0]))),)


def _equality(kind: str, a: Sig, b: Sig) -> Sig | None:
    first, second = _digits(a), _digits(b)
    if first is not None and second is not None:
        is_equal = int(first, 2) == int(second, 2)
        return (Bits(str(int(is_equal == (kind == "$eq")))),)
    # A bit compared with what makes it itself.
    neutral = "1" if kind == "$eq" else "0"
    if width_of(a) == 1 and second is not None and len(second) == 1 and second == neutral:
        return a
    if width_of(b) == 1 and first is not None and len(first) == 1 and first == neutral:
        return b
    return None
