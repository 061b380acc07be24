"""Write the tables of components in docs/resources.md."""

from __future__ import annotations

import re
from collections import defaultdict
from operator import itemgetter
from pathlib import Path

from measured_cases import measured_cases

from nnef_hw.boards import find_board
from nnef_hw.hardware.devices import Resources
from nnef_hw.hardware.families import FAMILIES
from nnef_hw.hardware.families.lut_weights import lut_weights

__all__ = ["TARGET", "make_text"]

TARGET = Path(__file__).resolve().parents[2] / "docs" / "resources.md"
Pairs = list[tuple[Resources, Resources]]


def make_text(text: str) -> str:
    """Return the document with both tables as they are now."""
    for name, table in (("errors", _errors()), ("weights", _weights())):
        begin, end = f"<!-- {name}: generated -->\n", f"<!-- end of {name} -->\n"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        assert pattern.search(text), f"docs/resources.md has no place for {name}"
        text = pattern.sub(lambda _, new=begin + table + end: new, text)
    return text


def _errors() -> str:
    """Return how far estimates of every component are from what was measured, and from unseen."""
    rows: dict[tuple[str, str], dict[str, Pairs]] = defaultdict(lambda: defaultdict(list))
    for family in FAMILIES:
        device = find_board(family.name).device
        for case, found in measured_cases(family):
            kind = case.part.costs, "" if case.typical else ", untypical"
            rows[kind][family.name].append((found, case.part.resources(device)))
    columns = "mean", "worst", "unseen"
    titles = [f"{family.title} {what}" for family in FAMILIES for what in columns]
    published = {family.name: lut_weights(family.name).errors for family in FAMILIES}
    lines = _head("component", "cases", *titles)
    for (name, untypical), pairs in sorted(rows.items()):
        cells = []
        for family in FAMILIES:
            unseen = None if untypical else published[family.name].get(name)
            cells += [*_error(pairs[family.name]), "-" if unseen is None else f"{unseen:.1%}"]
        counts = sorted({len(found) for found in pairs.values() if found})
        lines.append(_row(name + untypical, "/".join(map(str, counts)), *cells))
    return "".join(lines)


def _error(pairs: Pairs) -> tuple[str, str]:
    """Return the mean and the worst error of LUTs."""
    errors = [abs(estimate.lut - found.lut) / max(1, found.lut) for found, estimate in pairs]
    if not errors:
        return "-", "-"
    worst = errors.index(max(errors))
    found, estimate = pairs[worst]
    detail = f" ({found.lut} LUTs, not {estimate.lut})" if errors[worst] > DETAIL else ""
    return f"{sum(errors) / len(errors):.1%}", f"{errors[worst]:.1%}{detail}"


DETAIL = 0.1
"""Errors from which the numbers are told, too."""


def _weights() -> str:
    names = {
        (part, feature): None
        for family in FAMILIES
        for part, weights in sorted(family.lut_weights.items())
        for feature in weights
    }
    lines = _head("component", "feature", *(family.title for family in FAMILIES))
    for part, feature in sorted(names, key=itemgetter(0)):
        found = [family.lut_weights.get(part, {}).get(feature) for family in FAMILIES]
        lines.append(_row(part, feature, *("-" if x is None else f"{x:g}" for x in found)))
    return "".join(lines)


def _head(*titles: str) -> list[str]:
    return [_row(*titles), "|" + "---|" * len(titles) + "\n"]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    TARGET.write_text(make_text(TARGET.read_text()))
