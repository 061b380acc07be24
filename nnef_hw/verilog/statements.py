"""Processes of RTLIL as Verilog statements: of registers, and choices of wires."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nnef_hw.verilog.expressions import Context, Expressions, bare, constant
from nnef_hw.verilog.folding import bits
from nnef_hw.verilog.names import Names
from nnef_hw.verilog.rtlil import Assign, Bits, Case, Module, Sig, Slice, Switch, width_of

__all__ = ["Body", "Statements", "merged", "without_hold"]

Body = list[Assign | Switch]
INDENT = "    "


def without_hold(body: Body, register: str, width: int) -> Body:
    """Leave out that a register keeps its value unless something else is assigned."""
    first = body[0]
    assert isinstance(first, Assign)
    return body[1:] if first.value == (Slice(register, 0, width),) else body


def merged(bodies: Sequence[Body]) -> Iterator[Body]:
    """Join what is done under the same conditions to several targets."""
    groups: dict[object, list[Body]] = {}
    for body in bodies:
        shape = tuple(
            (statement.value, tuple(case.patterns for case in statement.cases))
            for statement in body
            if isinstance(statement, Switch)
        )
        groups.setdefault(shape, []).append(body)
    for group in groups.values():
        yield _joined(group) if len(group) > 1 else group[0]


def _joined(group: list[Body]) -> Body:
    """Join bodies whose switches are the same, one by one; targets differ."""
    result: Body = []
    pending = [list(body) for body in group]
    while any(pending):
        for body in pending:
            while body and isinstance(body[0], Assign):
                result.append(body.pop(0))
        switches = [body.pop(0) for body in pending if body]
        if not switches:
            break
        assert isinstance(switches[0], Switch)
        cases = []
        for n, case in enumerate(switches[0].cases):
            bodies = [x.cases[n].body for x in switches if isinstance(x, Switch)]
            inner = [x for body in merged([b for b in bodies if b]) for x in body]
            cases.append(Case(case.patterns, inner))
        result.append(Switch(switches[0].value, cases))
    return result


class Statements:
    """Writes bodies of processes; ``targets`` are the wires that stand for registers."""

    def __init__(self, module: Module, names: Names, expressions: Expressions) -> None:
        self._module = module
        self._names = names
        self._expressions = expressions

    def clocked(self, body: Body, reset: str | None) -> list[str]:
        """Write the statements of a clock edge; a reset of all its registers stands first."""
        last = body[-1] if body else None
        if isinstance(last, Switch) and reset is not None and self._resets_all(body, reset):
            head = [f"if ({self._names.of(reset)}) begin", *self._indented(last.cases[0].body)]
            otherwise = self.lines(body[:-1])
            if len(body) == 2 and otherwise[0].startswith("if "):
                return [*head, f"end else {otherwise[0]}", *otherwise[1:]]
            return [*head, "end else begin", *(f"{INDENT}{line}" for line in otherwise), "end"]
        return self.lines(body)

    def _resets_all(self, body: Body, reset: str) -> bool:
        last = body[-1]
        assert isinstance(last, Switch)
        if last.value != (Slice(reset, 0, 1),) or [c.patterns for c in last.cases] != [("1",)]:
            return False
        cleared = {x.target for x in last.cases[0].body if isinstance(x, Assign)}
        whole = {x.wire for x in cleared if x.width == self._module.wires[x.wire].width}
        return len(body) > 1 and {target.wire for target in _targets(body[:-1])} <= whole

    def lines(self, body: Body) -> list[str]:
        """Write statements, nonblocking."""
        found = []
        for statement in body:
            if isinstance(statement, Assign):
                target = statement.target
                value = self._expressions.text(statement.value, Context.WHOLE, target.width)
                found.append(f"{self._part(target)} <= {value};")
            elif not statement.value:
                found += [line for case in statement.cases for line in self.lines(case.body)]
            else:
                found += self._switch(statement)
        return found

    def _part(self, target: Slice) -> str:
        name = self._names.of(target.wire)
        if target.width == self._module.wires[target.wire].width:
            return name
        high = target.low + target.width - 1
        return f"{name}[{high}:{target.low}]" if target.width > 1 else f"{name}[{high}]"

    def _indented(self, body: Body) -> list[str]:
        return [f"{INDENT}{line}" for line in self.lines(body)]

    def _switch(self, switch: Switch) -> list[str]:
        if _are_apart(switch) and not any(case.body for case in switch.cases if not case.patterns):
            switch = Switch(switch.value, [case for case in switch.cases if case.body])
        conditions = self.conditions(switch)
        if conditions is None:
            return self._cases(switch)
        branches = [
            (condition, case.body) for condition, case in zip(conditions, switch.cases, strict=True)
        ]
        while branches and not branches[-1][1]:
            branches.pop()
        empty = 0
        while empty < len(branches) and not branches[empty][1]:
            empty += 1
        if empty:
            skipped = " || ".join(condition for condition, _ in branches[:empty] if condition)
            skipped = f"!({skipped})" if empty > 1 else _negated(skipped)
            condition, body = branches[empty]
            if branches[empty + 1 :]:
                # The branches behind must not be entered where the empty ones would be.
                return self._chain(branches)
            if condition is not None:
                skipped = f"{skipped} && {condition}"
            return self._chain([(skipped, body)])
        return self._chain(branches)

    def _chain(self, branches: Sequence[tuple[str | None, Body]]) -> list[str]:
        lines: list[str] = []
        for n, (condition, body) in enumerate(branches):
            head = "else " if n else ""
            test = "" if condition is None else f"if ({bare(condition)}) "
            if n:
                lines[-1] += f" {head}{test}begin"
            else:
                lines.append(f"{test}begin")
            lines += [*self._indented(body), "end"]
        if len(branches) == 1 and len(lines) == 3 and ";" in lines[1]:
            single = f"{lines[0].removesuffix('begin')}{lines[1].strip()}"
            if len(single) < 80:
                return [single]
        return lines

    def conditions(self, switch: Switch) -> list[str | None] | None:
        """Return when each case is done if none before it was; None if patterns say it better."""
        value = switch.value
        width = width_of(value)
        found: list[str | None] = []
        for case in switch.cases:
            if not case.patterns:
                found.append(None)
                continue
            if len(case.patterns) > 1:
                return None
            (pattern,) = case.patterns
            ones = [n for n, digit in enumerate(pattern) if digit != "-"]
            if len(ones) == 1:
                text = self._expressions.nested(bits(value, ones[0], 1), Context.ALONE)
                found.append(text if pattern[ones[0]] == "1" else _negated(text))
            elif len(switch.cases) < 3 and "-" not in pattern:
                text = self._expressions.nested(value)
                found.append(f"({text} == {constant(pattern)})")
            else:
                return None
        if width == 1 and len(found) == 2 and found[1] is not None:
            found[1] = None
        return found

    def _cases(self, switch: Switch) -> list[str]:
        word = "casez" if any("-" in p for c in switch.cases for p in c.patterns) else "case"
        lines = [f"{word} ({self._expressions.text(switch.value, Context.ALONE)})"]
        for case in switch.cases:
            label = ", ".join(_pattern(pattern) for pattern in case.patterns) or "default"
            body = self.lines(case.body)
            if len(body) == 1 and body[0].endswith(";"):
                lines.append(f"{INDENT}{label}: {body[0]}")
            else:
                lines += [f"{INDENT}{label}: begin", *(f"{INDENT * 2}{x}" for x in body)]
                lines.append(f"{INDENT}end")
        if switch.cases[-1].patterns:
            lines.append(f"{INDENT}default: ;")
        return [*lines, "endcase"]

    def choice(self, body: Body, target: Slice) -> str | Sig:
        """Return the value or expression that a process assigns to some bits of its wire."""
        return self._chosen(body, target, None)

    def _chosen(self, body: Body, target: Slice, before: str | Sig | None) -> str | Sig:
        current = before
        for statement in body:
            if isinstance(statement, Assign):
                whole = statement.target
                offset = target.low - whole.low
                if offset < 0 or offset >= whole.width:
                    continue
                first = whole.width - offset - target.width
                current = bits(statement.value, first, target.width)
            elif not statement.value:
                for case in statement.cases:
                    current = self._chosen(case.body, target, current)
            elif any(_covers(x, target) for case in statement.cases for x in _targets(case.body)):
                current = self._selected(statement, target, current)
        assert current is not None
        return current

    def _selected(self, switch: Switch, target: Slice, current: str | Sig | None) -> str:
        conditions = self.conditions(switch)
        if conditions is None:
            tested = self._expressions.nested(switch.value)
            conditions = [_matches(tested, case) for case in switch.cases]
        text = ""
        values: list[str | Sig] = [
            self._chosen(case.body, target, current) for case in switch.cases
        ]
        if None in conditions or _is_exhaustive(switch):
            final = values.pop()
            conditions.pop()
        else:
            assert current is not None
            final = current
        while values and (_are_apart(switch) or values[-1] == final) and final in values:
            position = len(values) - 1 - values[::-1].index(final)
            del values[position], conditions[position]
        if len(conditions) == 1 and (values[0], final) == ((Bits("1"),), (Bits("0"),)):
            assert conditions[0] is not None
            return conditions[0]
        for condition, value in zip(conditions, values, strict=True):
            text += f"{condition} ? {self._written(value)} : "
        return f"({text}{self._written(final)})" if text else self._written(final)

    def _written(self, value: str | Sig) -> str:
        return value if isinstance(value, str) else self._expressions.nested(value, Context.SAME)


def _targets(body: Body) -> Iterator[Slice]:
    for statement in body:
        if isinstance(statement, Assign):
            yield statement.target
        else:
            for case in statement.cases:
                yield from _targets(case.body)


def _covers(target: Slice, part: Slice) -> bool:
    return target.low <= part.low < target.low + target.width


def _are_apart(switch: Switch) -> bool:
    """Whether no two cases can match."""
    return not any("-" in pattern for case in switch.cases for pattern in case.patterns)


def _is_exhaustive(switch: Switch) -> bool:
    patterns = [pattern for case in switch.cases for pattern in case.patterns]
    if any("-" in pattern for pattern in patterns):
        return False
    return len(set(patterns)) == 1 << width_of(switch.value)


def _matches(value: str, case: Case) -> str | None:
    """Return the condition of a case with several patterns."""
    tests = []
    for pattern in case.patterns:
        if "-" in pattern:
            mask = constant(pattern.replace("0", "1").replace("-", "0"))
            tests.append(f"(({value} & {mask}) == {constant(pattern.replace('-', '0'))})")
        else:
            tests.append(f"({value} == {constant(pattern)})")
    if not tests:
        return None
    return tests[0] if len(tests) == 1 else f"({' | '.join(tests)})"


def _pattern(pattern: str) -> str:
    if "-" in pattern:
        return f"{len(pattern)}'b{pattern.replace('-', '?')}"
    return constant(pattern)


def _negated(condition: str) -> str:
    return condition[1:] if condition.startswith("!") else f"!{condition}"
