"""Rules for a whole document and its bodies that hold whatever the values are.

Specification, section 3.3 and chapter 6. What depends on values (labels, extents, indices, shapes)
is found when the graph is evaluated.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence

from nnef_hw.errors import Location, ModelError, NnefHwError, UnsupportedError
from nnef_hw.frontend.nnef.checking.declarations import check_declaration
from nnef_hw.frontend.nnef.checking.inference import Inference
from nnef_hw.frontend.nnef.checking.type_matching import conversion, unpacked
from nnef_hw.frontend.nnef.evaluation.exporters import or_leniently, warn_of
from nnef_hw.frontend.nnef.evaluation.library import load_library
from nnef_hw.frontend.nnef.evaluation.operators import nearest
from nnef_hw.frontend.nnef.evaluation.rules import Rules
from nnef_hw.frontend.nnef.language.syntax import (
    Array,
    ArrayType,
    Assignment,
    Conditional,
    Declaration,
    Document,
    Expression,
    GraphDefinition,
    Identifier,
    Invocation,
    Literal,
    TensorType,
    Tuple,
    TupleType,
    Type,
)
from nnef_hw.frontend.nnef.language.types import INTEGER, UNKNOWN, fits_inside
from nnef_hw.frontend.nnef.language.walk import identifiers, walk

__all__ = ["Findings", "check_document"]

_FRAGMENTS = "KHR_enable_fragment_definitions"
_EXPRESSIONS = "KHR_enable_operator_expressions"
_SIMPLE = {Identifier, Literal}


class Findings:
    """The errors of a document, and the parts that cannot be evaluated because of them."""

    def __init__(self) -> None:
        self.errors: list[NnefHwError] = []
        self.broken: set[str] = set()
        """Fragments that cannot be expanded."""
        self._wrong: set[int] = set()

    def spoils(self, assignment: Assignment, unknown: set[str]) -> bool:
        """Whether an assignment is wrong, or needs a wrong fragment or an unknown identifier."""
        if id(assignment) in self._wrong:
            return True
        if not unknown and not self.broken:
            return False
        return any(
            (isinstance(part, Identifier) and part.name in unknown)
            or (isinstance(part, Invocation) and part.operator in self.broken)
            for part in walk(assignment.value)
        )

    def add_wrong(self, assignment: Assignment, error: NnefHwError) -> None:
        """Add an error that makes an assignment of the graph unusable."""
        self.errors.append(error)
        self._wrong.add(id(assignment))

    def add_broken(self, fragments: Mapping[str, Declaration], name: str) -> None:
        """Mark a fragment, and everything that invokes it, as unusable."""
        if name in self.broken:
            return
        self.broken.add(name)
        for other, declaration in fragments.items():
            if any(
                isinstance(part, Invocation) and part.operator == name
                for assignment in declaration.body or ()
                for part in walk(assignment.value)
            ):
                self.add_broken(fragments, other)


def check_document(document: Document, rules: Rules, symbols: Mapping[str, object]) -> Findings:
    """Check everything about a document that does not depend on values.

    Parameters
    ----------
    symbols
        Identifiers that are defined without an assignment.
    """
    return _Checker(document, rules, symbols).check()


class _Checker:
    def __init__(self, document: Document, rules: Rules, symbols: Mapping[str, object]) -> None:
        self._document = document
        self._rules = rules
        self._symbols = symbols
        self._findings = Findings()
        self._misdeclared: set[str] = set()
        self._fragments = {item.name: item for item in document.fragments}
        libraries = [load_library(name) for name in reversed(rules.libraries)]
        self._library: Mapping[str, Declaration] = ChainMap(*libraries)  # type: ignore[arg-type]
        self._declarations: Mapping[str, Declaration] = (
            ChainMap(self._fragments, *libraries)  # type: ignore[arg-type]
            if self._fragments
            else self._library
        )
        self._enabled = {name.name for extension in document.extensions for name in extension.names}

    def check(self) -> Findings:
        errors = self._findings.errors
        errors += self._check_extensions()
        for declaration in self._document.fragments:
            self._note(declaration, self._check_signature(declaration))
        self._misdeclared = set(self._findings.broken)
        for declaration in self._document.fragments:
            self._note(declaration, self._check_fragment_body(declaration))
        self._check_graph(self._document.graph)
        errors += _check_interface(self._document.graph, self._rules)
        return self._findings

    def _note(self, declaration: Declaration, found: Iterator[NnefHwError]) -> None:
        """Keep the errors of a fragment."""
        for error in found:
            self._findings.errors.append(error)
            self._findings.add_broken(self._fragments, declaration.name)

    def _inference(self, fragment: Declaration | None = None) -> Inference:
        return Inference(self._declarations, self._rules, fragment, unusable=self._misdeclared)

    def _check_extensions(self) -> Iterator[NnefHwError]:
        for extension in self._document.extensions:
            is_vendors = extension.names[0].name.startswith("tract_")
            for name in extension.names[:1] if is_vendors else extension.names:
                if not self._rules.knows_extension(name.name):
                    yield UnsupportedError(
                        f"the extension {name.name!r} is not supported",
                        remedy=nearest(name.name, self._rules.extensions)
                        or "export the model as plain NNEF 1.0",
                        location=name.location,
                    )
        if not self._rules.extension_lines:
            return
        fragments = self._document.fragments
        if fragments and _FRAGMENTS not in self._enabled:
            yield _disabled("fragment definitions", _FRAGMENTS, fragments[0].location)
        if _EXPRESSIONS not in self._enabled:
            bodies = [item.body for item in fragments if item.body is not None]
            bodies.append(self._document.graph.assignments)
            for body in bodies:
                for assignment in body:
                    where = _compositional(assignment)
                    if where is not None:
                        yield _disabled("operator expressions", _EXPRESSIONS, where)
                        return

    def _check_signature(self, declaration: Declaration) -> Iterator[NnefHwError]:
        first = next(item for item in self._document.fragments if item.name == declaration.name)
        if first is not declaration:
            yield ModelError(
                f"the fragment {declaration.name!r} is defined twice, first in line "
                f"{first.location.line}",
                remedy="choose another name",
                location=declaration.location,
            )
        if declaration.name in self._library and not self._rules.redefinitions:
            yield ModelError(
                f"the fragment {declaration.name!r} has the name of an operator of NNEF",
                remedy="choose another name, or let its definition count with --lenient",
                location=declaration.location,
            )
        if self._rules.typed:
            inference = self._inference(declaration)
            yield from check_declaration(
                declaration, lambda value: inference.infer(value, ""), self._rules
            )

    def _check_fragment_body(self, declaration: Declaration) -> Iterator[NnefHwError]:
        if declaration.body is None or not self._rules.typed:
            return
        inference = self._inference(declaration)
        parameters = {item.name: item.location for item in declaration.parameters}
        inference.types.update((item.name, item.type) for item in declaration.parameters)
        errors: list[NnefHwError] = []
        assigned = self._check_body(
            declaration.body, inference, parameters, lambda _, error: errors.append(error)
        )
        yield from errors
        for result in declaration.results:
            if result.name not in assigned:
                yield ModelError(
                    f"fragment {declaration.name!r} never assigns its result {result.name!r}",
                    remedy=nearest(result.name, assigned) or f"write {result.name} = ...",
                    location=result.location,
                )
                continue
            kind = inference.types.get(result.name, UNKNOWN)
            if not fits_inside(kind, result.type):
                yield ModelError(
                    f"fragment {declaration.name!r}: its result {result.name!r} is declared as "
                    f"{result.type}, but {kind} is assigned",
                    remedy=conversion(kind, result.type),
                    location=assigned[result.name],
                )

    def _check_graph(self, graph: GraphDefinition) -> None:
        inference = self._inference()
        inference.types.update(dict.fromkeys(self._symbols, INTEGER))
        self._check_body(graph.assignments, inference, {}, self._findings.add_wrong)

    def _check_body(
        self,
        body: tuple[Assignment, ...],
        inference: Inference,
        parameters: Mapping[str, Location],
        report: Callable[[Assignment, NnefHwError], None],
    ) -> dict[str, Location]:
        """Check the assignments of a body; return where its identifiers are assigned."""
        assigned: dict[str, Location] = {}
        targets = [list(identifiers(assignment.target)) for assignment in body]
        inference.later = {item.name for items in targets for item in items}
        in_graph = not inference.fragment
        for assignment, items in zip(body, targets, strict=True):
            types: dict[str, Type] = {}
            if self._rules.typed:
                try:
                    kind = inference.infer(assignment.value, items[0].name if items else "")
                    types = _unpacked(
                        assignment, kind, inference.arrays, self._declarations, self._rules
                    )
                    if in_graph:
                        _check_tensors(assignment, types)
                except NnefHwError as error:
                    report(assignment, error)
                    types = {}
            for item in items:
                again = _assigned_again(item, assigned, parameters)
                if again is not None and not self._rules.shadowing:
                    report(assignment, or_leniently(again))
                    continue
                if again is not None and self._rules.conversions:
                    warn_of(again)
                assigned[item.name] = item.location
                inference.types[item.name] = types.get(item.name, UNKNOWN)
        return assigned


def _disabled(what: str, extension: str, where: Location) -> ModelError:
    return ModelError(
        f"{what} are not enabled",
        remedy=f"write below the version: extension {extension};",
        location=where,
    )


def _compositional(assignment: Assignment) -> Location | None:
    """Return where an assignment leaves the flat syntax: an invocation of simple arguments."""
    value = assignment.value
    if not isinstance(value, Invocation):
        return value.location
    for argument in value.arguments:
        if type(argument.value) not in _SIMPLE:
            for part in walk(argument.value):
                if not isinstance(part, Identifier | Literal | Array | Tuple):
                    return part.location
    return None


def _assigned_again(
    item: Identifier, assigned: Mapping[str, Location], parameters: Mapping[str, Location]
) -> ModelError | None:
    """Return the error of an identifier that has a value already."""
    if item.name in parameters:
        return ModelError(
            f"the parameter {item.name!r} of the fragment is assigned",
            remedy="choose another name for the new value",
            location=item.location,
        )
    if item.name in assigned:
        return ModelError(
            f"the tensor {item.name!r} is assigned twice, first in line {assigned[item.name].line}",
            remedy="choose another name",
            location=item.location,
        )
    return None


def _check_tensors(assignment: Assignment, types: Mapping[str, Type]) -> None:
    """Check that every identifier of the graph is a tensor."""
    for item in identifiers(assignment.target):
        kind = types[item.name]
        if kind is UNKNOWN or isinstance(kind, TensorType):
            continue
        if isinstance(kind, ArrayType):
            remedy = "write [a, b] = ..."
        elif isinstance(kind, TupleType):
            remedy = "write a, b = ..."
        else:
            remedy = "write the value where it is used"
        raise ModelError(
            f"{item.name!r} is {kind}, but every identifier of the graph is a tensor",
            remedy=remedy,
            location=item.location,
        )


def _unpacked(
    assignment: Assignment,
    kind: Type,
    arrays: Sequence[Invocation],
    declarations: Mapping[str, Declaration],
    rules: Rules,
) -> dict[str, Type]:
    """Return the types of an assignment's identifiers.

    Parameters
    ----------
    arrays
        Invocations in it that result in an array. Its length must be known without the
        operator's shape rule (1.0.5), unless the target lists the items.
    """
    target, value = assignment.target, assignment.value
    first = next(identifiers(target), None)
    title = f"{value.operator} {first.name!r}: " if isinstance(value, Invocation) and first else ""
    try:
        types = dict(unpacked(target, kind))
    except ModelError as error:
        placed = ModelError(title + error.reason, remedy=error.remedy, location=error.location)
        if not rules.conversions:
            is_array = isinstance(target, Tuple) and isinstance(kind, ArrayType)
            raise (or_leniently(placed) if is_array else placed) from None
        types = dict(unpacked(target, kind, tuples=True))
        warn_of(placed)
    for part in arrays:
        is_listed = part is value and isinstance(target, Array | Tuple)
        if is_listed or _has_known_length(declarations[part.operator], declarations, set()):
            continue
        raise ModelError(
            f"{title}the result is an array, so its items are listed"
            if part is value
            else f"the result of {part.operator!r} is an array whose items have no names",
            remedy="write [a, b] = ...",
            location=part.location,
        )
    return types


def _has_known_length(
    declaration: Declaration, declarations: Mapping[str, Declaration], seen: set[str]
) -> bool:
    """Whether the array a compound results in ends in an array expression."""
    if declaration.body is None or declaration.name in seen:
        return declaration.name in seen
    seen.add(declaration.name)
    name = declaration.results[0].name
    return all(
        _is_known(assignment.value, declarations, seen)
        for assignment in declaration.body
        if isinstance(assignment.target, Identifier) and assignment.target.name == name
    )


def _is_known(value: Expression, declarations: Mapping[str, Declaration], seen: set[str]) -> bool:
    if isinstance(value, Conditional):
        return _is_known(value.then, declarations, seen) and _is_known(
            value.otherwise, declarations, seen
        )
    if isinstance(value, Invocation):
        called = declarations.get(value.operator)
        return called is None or _has_known_length(called, declarations, seen)
    return True


def _check_interface(graph: GraphDefinition, rules: Rules) -> Iterator[ModelError]:
    externals: set[str] = set()
    assigned: set[str] = set()
    for assignment in graph.assignments:
        assigned.update(item.name for item in identifiers(assignment.target))
        value = assignment.value
        if (
            isinstance(value, Invocation)
            and value.operator in rules.externals
            and isinstance(assignment.target, Identifier)
        ):
            externals.add(assignment.target.name)
    inputs = {item.name for item in graph.inputs}
    for item in graph.inputs:
        if item.name not in externals:
            yield ModelError(
                f"the graph input {item.name!r} is not the result of an external",
                remedy=f"write {item.name} = external(shape = [...]);",
                location=item.location,
            )
    for item in graph.outputs:
        if item.name not in assigned:
            yield ModelError(
                f"the graph result {item.name!r} is never assigned",
                remedy=nearest(item.name, assigned),
                location=item.location,
            )
        elif item.name in inputs:
            yield ModelError(
                f"{item.name!r} is both an input and a result of the graph",
                remedy=f"write y = copy({item.name}); and let y be the result",
                location=item.location,
            )
    for group in (graph.inputs, graph.outputs):
        for index, item in enumerate(group):
            if item.name in {other.name for other in group[:index]}:
                yield ModelError(
                    f"{item.name!r} is listed twice", remedy="remove one", location=item.location
                )
