"""Schemes in TOML files."""

import re

import numpy as np
import pytest

from nnef_hw.errors import ErrorGroup, UsageError
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize, read_scheme
from nnef_hw.testing import GraphBuilder

FILE = """\
weight_bits = 4            # everywhere
calibration = "percentile"
percentile = 99.5
equalize = true

[layers.first]
weight_bits = 8
mult_bits = 8

[layers."x"]
activation_bits = 6
"""


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "scheme.toml"
        path.write_text(text)
        return path

    return write


def network(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 4))
    builder.op("linear", "x", rng.standard_normal((5, 4)), 0.0, name="first")
    builder.op("linear", "first", rng.standard_normal((3, 5)), 0.0, name="last")
    return simplify(builder.build())


def test_values_are_those_of_the_file(written):
    scheme = read_scheme(written(FILE), Scheme(activation_bits=7))
    assert (scheme.weight_bits, scheme.activation_bits, scheme.percentile) == (4, 7, 99.5)
    assert (scheme.calibration, scheme.equalize) == ("percentile", True)
    assert scheme.of("first").weight_bits == 8
    assert scheme.of("x").activation_bits == 6


def test_layers_are_quantized_as_their_tables_say(written, rng):
    fixed = quantize(network(rng), {"x": rng.random((30, 4))}, read_scheme(written(FILE)))
    first, last = (node for node in fixed.nodes if node.op in {"conv", "linear"})
    assert [fixed.tensor(node.inputs[1]).qtype.bits for node in (first, last)] == [8, 4]
    assert [node.attrs["requant"].mult_bits for node in (first, last)] == [8, 16]
    assert [fixed.tensor(name).qtype.bits for name in ("x", first.name, last.name)] == [6, 8, 8]


def test_unknown_layers_are_refused_with_their_line(written, rng):
    scheme = read_scheme(written(FILE.replace("layers.first", "layers.frist")))
    message = (
        "scheme.toml:6: layer 'frist' does not exist; did you mean 'first'? the layers are x, "
    )
    with pytest.raises(UsageError, match=re.escape(message)):
        quantize(network(rng), {"x": rng.random((30, 4))}, scheme)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("weights = 4", "scheme.toml:1: key 'weights' does not exist; did you mean 'weight_bits'?"),
        ("\nweight_bits = 9", "scheme.toml:2: weight_bits must be in 1..8, not 9"),
        ("weight_bits = 4.0", "scheme.toml:1: weight_bits is 4.0; give a whole number"),
        ("weight_bits = true", "scheme.toml:1: weight_bits is True; give a whole number"),
        ("equalize = 1", "scheme.toml:1: equalize is 1; give true or false"),
        ("calibration = 'max'", "scheme.toml:1: calibration must be 'minmax', 'percentile', 'mse'"),
        ("[layers.c]\nbits = 4", "scheme.toml:2: key 'bits' does not exist; did you mean '"),
        ("[layers.c]\nequalize = true", "'equalize' cannot be set for single layers"),
        ("layers = 3", "scheme.toml:1: 'layers' is 3, not a table; write [layers.NAME]"),
        ("[layers]\nc = 3", "layer 'c' is 3, not a table"),
        ("weight_bits = ", "scheme.toml: the file is not valid TOML: invalid value"),
        ("[layers.c]\n[layers.c]", "the file is not valid TOML: cannot declare"),
    ],
)  # fmt: skip
def test_what_is_no_scheme_is_refused_where_it_stands(text, message, written):
    with pytest.raises(UsageError, match=re.escape(message)):
        read_scheme(written(text))


def test_all_mistakes_are_told_at_once(written):
    with pytest.raises(ErrorGroup) as caught:
        read_scheme(written("weight_bits = 0\nfoo = 1\n[layers.c]\nmult_bits = 99\n"))
    assert [error.location.line for error in caught.value.errors] == [1, 2, 4]


def test_files_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_scheme(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(np.arange(256, dtype=np.uint8).tobytes())
    with pytest.raises(UsageError, match="is not UTF-8 text"):
        read_scheme(tmp_path / "bytes.toml")
