import json
import re
import tarfile

import numpy as np
import pytest

from nnef_hw.arithmetic.numerics import QType, Requant
from nnef_hw.errors import Location, ModelError
from nnef_hw.frontend.nnef import graph_hash, load_nnef, save_nnef
from nnef_hw.frontend.nnef.archive.archive import open_archive, write_archive
from nnef_hw.frontend.nnef.archive.tensor_file import ItemType, read_tensor
from nnef_hw.frontend.nnef.language.parser import parse_document
from nnef_hw.ir import Graph, Node, Stage, Tensor, verify

ACTIVATION = QType(8, True, 0.1, 3)
WEIGHT = QType(4, True, (0.1, 1 / 3, 1e-9), 0, True)
BIAS = QType(32, True, (0.01, 0.1 / 3, 1e-10))
PLACE = Location("graph.nnef", 3, 5, "  conv1 = ...")


@pytest.fixture
def graph(rng):
    tensors = [
        Tensor("x", (1, 2, 4, 4), qtype=ACTIVATION, location=PLACE),
        Tensor("w", (3, 2, 3, 3), "scalar", rng.integers(-7, 8, (3, 2, 3, 3)), "conv1/w", WEIGHT),
        Tensor("b", (1, 3), data=rng.integers(-99999, 99999, (1, 3)), qtype=BIAS),
        Tensor("conv1.out", (1, 3, 2, 2), qtype=ACTIVATION),
        Tensor("s", (1, 3, 2, 2), qtype=QType(8, False, 1 / 256)),
        Tensor("y", (1, 3, 2, 2), qtype=QType(16, True, 0.7)),
    ]
    window = {"padding": [(0, 0), (0, 0)], "stride": [1, 1], "dilation": [1, 1]}
    requant = Requant((1, 2, 65535), 20, 3, 3, 127)
    attrs = {"border": "constant", **window, "groups": 1}
    table = rng.integers(-128, 128, 256)
    odd = {"a": None, "b": float("-inf"), "c": (1, [True, (2.5,)]), "d": 0.1, "e": ACTIVATION}
    nodes = (
        Node(
            "conv",
            ("x", "w", "b"),
            ("conv1.out",),
            {**attrs, "activation": "relu", "requant": requant},
            PLACE,
        ),
        Node("sigmoid", ("conv1.out",), ("s",), {"table": table}),
        Node("requantize", ("s",), ("y",), {"table": rng.integers(-32768, 32768, 256), **odd}),
    )
    result = Graph(
        "net", ("x",), ("y",), {tensor.name: tensor for tensor in tensors}, nodes, Stage.FIXED
    )
    verify(result)
    return result


@pytest.fixture
def path(graph, tmp_path):
    save_nnef(graph, tmp_path / "fixed.nnef.tgz")
    return tmp_path / "fixed.nnef.tgz"


def change(path, name, old, new):
    """Replace some bytes of a member."""
    with tarfile.open(path) as tar:
        members = {info.name: tar.extractfile(info).read() for info in tar}
    assert old in members[name]
    write_archive(path, {**members, name: members[name].replace(old, new)})


def test_fixed_graphs_come_back_equal(graph, path, assert_same):
    again = load_nnef(path)

    assert_same(graph, again)
    assert graph_hash(again) == graph_hash(graph)
    assert [node.location for node in again.nodes] == [PLACE, None, None]
    assert again.tensor("x").location == PLACE


def test_saving_is_deterministic(graph, path, tmp_path):
    other = tmp_path / "other.nnef.tgz"
    save_nnef(load_nnef(path), other)

    assert other.read_bytes() == path.read_bytes()


def test_other_tools_read_plain_nnef(path):
    archive = open_archive(path)
    text = archive.read("graph.nnef").decode()

    assert parse_document(text, "graph.nnef").graph.name == "net"
    assert "    conv1_out_linear = conv(x, w, b, border = 'constant', padding = " in text
    assert "    conv1_out = relu(conv1_out_linear);\n" in text
    assert "    y = copy(s);  # requantize in fixed.json\n" in text


def test_khronos_parser_takes_the_text_and_the_codes(graph, tmp_path):
    khronos = pytest.importorskip("nnef", reason="pip install nnef-hw[crosscheck]")
    save_nnef(graph, tmp_path / "fixed")
    read = khronos.load_graph(str(tmp_path / "fixed"))

    assert [operation.name for operation in read.operations][-4:] == [
        "conv",
        "relu",
        "sigmoid",
        "copy",
    ]
    np.testing.assert_array_equal(read.tensors["w"].data, graph.constant("w"))
    assert read.tensors["w"].quantization["bits"] == 4


def test_quantization_file_has_a_line_per_tensor(path):
    lines = open_archive(path).read("graph.quant").decode().splitlines()

    assert lines[0] == (
        '"x": zero_point_linear_quantize(zero_point = 3, scale = 0.1, bits = 8, signed = true, '
        "symmetric = false);"
    )
    assert '"w": zero_point_linear_quantize(zero_point = 0, scale = [0.1, 0.333' in lines[1]
    assert "bits = 4, signed = true, symmetric = true" in lines[1]
    assert "scale = [[0.01, 0.03333333333333333, 1e-10]]" in lines[2]
    assert [line.split(":")[0] for line in lines] == [
        '"x"', '"w"', '"b"', '"conv1_out"', '"s"', '"y"',
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "item_type", "bits"),
    [
        ("conv1/w.dat", ItemType.QUANTIZED_SIGNED, 8),
        ("b.dat", ItemType.QUANTIZED_SIGNED, 32),
        ("fixed/y.table.dat", ItemType.SIGNED, 16),
    ],
)
def test_codes_are_stored_in_whole_bytes(path, name, item_type, bits):
    file = read_tensor(open_archive(path).read(name), Location(name))

    assert (file.item_type, file.bits) == (item_type, bits)


def test_canonical_graphs_come_back_equal(tmp_path, rng, assert_same):
    tensors = [
        Tensor("x", (1, 4)),
        Tensor("w", (2, 4), data=rng.normal(size=(2, 4)), label="w"),
        Tensor("b", (1, 2), data=np.zeros((1, 2))),
        Tensor("y", (1, 2)),
    ]
    node = Node("linear", ("x", "w", "b"), ("y",), {"activation": None})
    graph = Graph(
        "net", ("x",), ("y",), {item.name: item for item in tensors}, (node,), Stage.CANONICAL
    )
    save_nnef(graph, tmp_path / "m.nnef.tgz")

    assert_same(graph, load_nnef(tmp_path / "m.nnef.tgz"))
    assert "graph.quant" not in open_archive(tmp_path / "m.nnef.tgz")


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("graph.nnef", b"stride", b"Stride", "graph.nnef was changed after the model was"),
        ("fixed.json", b'"format": 1', b'"format": 3', "format 3 is not known, only 1 and 2"),
        ("fixed.json", b'"shift": 20', b'"shift": 21', "the graph does not match the hash"),
        ("fixed.json", b'"shift": 20', b'"shift": 99', "the file is damaged: ValueError: requ"),
        ("fixed.json", b'"shift"', b'"shaft"', "the file is damaged: TypeError"),
        ("fixed.json", b'"graph_hash"', b'"x"', "the file is damaged: KeyError"),
        ("fixed.json", b"{", b"[", "the file is damaged: JSONDecodeError"),
        ("fixed.json", b'"int64"', b'"object"', "the file is damaged"),
        ("fixed.json", b'"conv1/w.dat"', b'"../w.dat"', "the model has no file '../w.dat'"),
        ("fixed.json", b'"op": "conv"', b'"op": "add"', "the file is damaged: AssertionError"),
        ("b.dat", b"\x4e\xef", b"\x4e\xee", "the file begins with 4e ee"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else value[:30],
)
def test_damage_is_noticed(path, name, old, new, message):
    change(path, name, old, new)
    with pytest.raises(ModelError, match=re.escape(message)):
        load_nnef(path)


def test_a_changed_weight_is_noticed(path):
    data = open_archive(path).read("conv1/w.dat")
    change(path, "conv1/w.dat", data, data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(ModelError, match="does not match the hash that was stored with it"):
        load_nnef(path)


def test_deep_json_is_damage_not_a_crash(path):
    content = open_archive(path).read("fixed.json")
    change(path, "fixed.json", content, b"[" * 200_000)
    with pytest.raises(ModelError, match="the file is damaged"):
        load_nnef(path)


def test_file_tells_which_graph_it_holds(graph, path):
    assert json.loads(open_archive(path).read("fixed.json"))["graph_hash"] == graph_hash(graph)
