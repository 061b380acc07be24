import pytest

from nnef_hw.frontend.nnef.language.parser import parse_library
from nnef_hw.frontend.nnef.language.types import (
    EMPTY,
    UNKNOWN,
    common_type,
    fits,
    fits_inside,
    has_tensor,
    is_generic,
    substituted,
)


def type_of(text):
    """Return a type written as in NNEF; ``[]`` is that of the empty array."""
    if text == "[]":
        return EMPTY
    (declaration,) = parse_library(f"fragment f(a: {text}) -> (b: tensor<scalar>);", "f")
    return declaration.parameters[0].type


PRIMITIVES = ("integer", "scalar", "logical", "string")


@pytest.mark.parametrize("actual", PRIMITIVES)
@pytest.mark.parametrize("wanted", PRIMITIVES)
def test_primitives_fit_only_themselves(actual, wanted):
    assert fits(type_of(actual), type_of(wanted)) == (actual == wanted)


@pytest.mark.parametrize(
    ("actual", "wanted"),
    [
        ("scalar", "tensor<scalar>"),
        ("logical", "tensor<logical>"),
        ("integer", "tensor<>"),
        ("integer", "tensor<?>"),
        ("string", "?"),
        ("tensor<integer>", "tensor<?>"),
        ("tensor<integer>", "tensor<>"),
        ("tensor<?>", "tensor<>"),
        ("[]", "integer[]"),
        ("[]", "(integer, integer)[]"),
        ("[]", "tensor<scalar>[][]"),
        ("scalar[]", "tensor<scalar>[]"),
        ("scalar[][]", "?[][]"),
        ("(integer, scalar)", "(integer, tensor<scalar>)"),
        ("(integer, integer)[]", "(integer, ?)[]"),
    ],
)
def test_what_stands_for_what_and_never_the_other_way(actual, wanted):
    assert fits(type_of(actual), type_of(wanted))
    assert not fits(type_of(wanted), type_of(actual))
    assert common_type(type_of(actual), type_of(wanted)) == type_of(wanted)
    assert common_type(type_of(wanted), type_of(actual)) == type_of(wanted)


@pytest.mark.parametrize(
    ("actual", "wanted"),
    [
        ("integer", "tensor<scalar>"),
        ("string", "tensor<>"),
        ("string", "tensor<?>"),
        ("tensor<scalar>", "?"),
        ("tensor<scalar>", "tensor<logical>"),
        ("integer", "integer[]"),
        ("integer[]", "scalar[]"),
        ("(integer, integer)", "integer[]"),
        ("(integer, integer)", "(integer, integer, integer)"),
        ("[]", "integer"),
    ],
)
def test_what_does_not_go_together(actual, wanted):
    assert not fits(type_of(actual), type_of(wanted))
    assert not fits(type_of(wanted), type_of(actual))


def test_tuples_meet_item_by_item():
    left, right = type_of("(scalar, tensor<scalar>)"), type_of("(tensor<scalar>, scalar)")

    assert common_type(left, right) == type_of("(tensor<scalar>, tensor<scalar>)")
    assert common_type(left, type_of("(scalar, string)")) is None


def test_in_a_generic_body_the_type_is_one_of_its_own():
    assert fits(type_of("scalar"), type_of("tensor<?>"))
    assert not fits_inside(type_of("scalar"), type_of("tensor<?>"))
    assert fits_inside(type_of("?"), type_of("tensor<?>"))
    assert fits_inside(type_of("[]"), type_of("?[]"))


def test_what_is_wrong_already_fits_everywhere():
    assert fits(UNKNOWN, type_of("integer[]"))
    assert fits(type_of("integer[]"), UNKNOWN)
    assert common_type(UNKNOWN, type_of("string")) is UNKNOWN


@pytest.mark.parametrize(
    ("text", "tensor", "generic"),
    [
        ("integer", False, False),
        ("?", False, True),
        ("tensor<scalar>", True, False),
        ("tensor<?>[]", True, True),
        ("(integer, ?[])", False, True),
        ("(tensor<integer>, tensor<>)[]", True, False),
    ],
)
def test_parts(text, tensor, generic):
    assert has_tensor(type_of(text)) == tensor
    assert is_generic(type_of(text)) == generic
    assert not is_generic(substituted(type_of(text), "scalar"))


def test_substitution():
    assert substituted(type_of("(tensor<?>, ?[])"), "logical") == type_of(
        "(tensor<logical>, logical[])"
    )
