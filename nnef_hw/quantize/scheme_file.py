"""Schemes in TOML files: values for all layers, and tables ``[layers.NAME]`` for single ones."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path

from nnef_hw.arithmetic.records import AttributeMap, Fields
from nnef_hw.errors import Location, NnefHwError, UsageError, raise_all
from nnef_hw.ir import Graph
from nnef_hw.quantize.calibration.scheme import LAYER_KEYS, Scheme

__all__ = ["check_layers", "read_scheme", "with_settings"]

_DEFAULT = Scheme()
_KEYS = tuple(f.name for f in fields(Scheme) if f.name not in {"layers", "locations"})
MOST_NAMES = 16
_TYPES = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}


def read_scheme(path: Path, base: Scheme = _DEFAULT) -> Scheme:
    """Return ``base`` with the values of a TOML file.

    Raises
    ------
    UsageError, ErrorGroup
        If anything in the file is not a valid value of a scheme; with its line.
    """
    try:
        text = path.read_text(encoding="utf-8")
        values = tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"scheme {str(path)!r} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"scheme {str(path)!r} is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        where = re.search(r" \(at line (\d+), column (\d+)\)", str(error))
        location = Location(str(path), *(map(int, where.groups()) if where else ()))
        reason = str(error)[: where.start()] if where else str(error)
        raise UsageError(
            f"the file is not valid TOML: {reason[:1].lower()}{reason[1:]}", location=location
        ) from error
    return _Reader(str(path), text, values).scheme(base)


def with_settings(base: Scheme, settings: Sequence[str]) -> Scheme:
    """Return ``base`` with values as ``--set`` takes them: ``KEY=VALUE``, ``LAYER.KEY=VALUE``.

    Raises
    ------
    UsageError, ErrorGroup
        If anything in them is not a valid value of a scheme.
    """
    values: Fields = {"layers": {name: dict(x) for name, x in base.layers.items()}}
    for setting in settings:
        target, equals, text = setting.rpartition("=")
        layer, _, key = target.rpartition(".")
        if not equals or not key:
            raise UsageError(f"--set {setting!r} is not [LAYER.]KEY=VALUE")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text
        table = values["layers"].setdefault(layer, {}) if layer else values
        table[key] = value
    found = _Reader("--set", "", values).scheme(base)
    return replace(found, locations={**found.locations, **base.locations})


def check_layers(scheme: Scheme, graph: Graph) -> None:
    """Refuse a scheme for layers that a canonical graph does not have."""
    names = (*graph.inputs, *(node.name for node in graph.nodes))
    raise_all([
        _unknown("layer", name, names, scheme.locations.get(name))
        for name in scheme.layers
        if name not in names
    ])


def _unknown(what: str, name: str, names: Sequence[str], location: Location | None) -> UsageError:
    close = get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    shown = ", ".join(names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")
    return UsageError(
        f"{what} {name!r} does not exist",
        remedy=f"{hint}the {what}s are {shown}",
        location=location,
    )


class _Reader:
    def __init__(self, file: str, text: str, values: Mapping[str, object]) -> None:
        self._file = file
        self._values = values
        self._lines = dict(_lines(text))
        self._errors: list[NnefHwError] = []

    def scheme(self, base: Scheme) -> Scheme:
        plain = {key: value for key, value in self._values.items() if key != "layers"}
        base = self._with(base, plain, "")
        layers = self._values.get("layers", {})
        if not isinstance(layers, dict):
            self._refuse(f"'layers' is {layers!r}, not a table", "write [layers.NAME]", "layers")
            layers = {}
        tables: dict[str, dict[str, object]] = {}
        for name, table in layers.items():
            if isinstance(table, dict):
                self._with(base, table, name)
                tables[name] = table
            else:
                self._refuse(f"layer {name!r} is {table!r}, not a table", "write [layers.NAME]", "")
        raise_all(self._errors)
        locations = {name: self._location("", name) for name in tables}
        return replace(base, layers=tables, locations=locations)

    def _with(self, base: Scheme, values: AttributeMap, layer: str) -> Scheme:
        for key, value in values.items():
            location = self._location(key, layer)
            if key not in (LAYER_KEYS if layer else _KEYS):
                self._errors.append(_unknown_key(key, layer, location))
                continue
            wanted = type(getattr(_DEFAULT, key))
            if type(value) is not wanted and not (wanted is float and type(value) is int):
                self._refuse(f"{key} is {value!r}", f"give {_TYPES[wanted]}", key, layer)
                continue
            try:
                base = replace(base, **{key: value})
            except ValueError as error:
                self._refuse(str(error).removeprefix("Scheme "), None, key, layer)
        return base

    def _refuse(self, reason: str, remedy: str | None, key: str, layer: str = "") -> None:
        location = self._location(key, layer)
        self._errors.append(UsageError(reason, remedy=remedy, location=location))

    def _location(self, key: str, layer: str) -> Location:
        return Location(self._file, self._lines.get((layer, key), 0))


def _unknown_key(key: str, layer: str, location: Location) -> UsageError:
    if layer and key in _KEYS:
        return UsageError(
            f"{key!r} cannot be set for single layers",
            remedy="write it above the first table: it applies to the whole network",
            location=location,
        )
    return _unknown("key", key, LAYER_KEYS if layer else (*_KEYS, "layers"), location)


def _lines(text: str) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield (layer, key) and the line it stands in; the key is empty for a table's own line."""
    layer = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[\s*layers\s*\.\s*(.+?)\s*\]", line):
            layer = header[1].strip("\"'")
            yield (layer, ""), number
        elif key := re.match(r"\s*([\w-]+|\"[^\"]*\"|'[^']*')\s*=", line):
            yield (layer, key[1].strip("\"'")), number
