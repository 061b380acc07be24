"""What messages tell the user to do is done, and works."""

import re

import numpy as np
import pytest

from nnef_hw.cli import main
from nnef_hw.errors import ErrorGroup, NnefHwError, UnsupportedError
from nnef_hw.frontend import load

onnx = pytest.importorskip("onnx", reason="pip install nnef-hw[onnx]")


def tensor(name, *shape):
    """Return the declaration of a constant."""
    extents, volume = ",".join(map(str, shape)), np.prod(shape)
    return f"float[{extents}] {name} = {{{', '.join(f'{n % 7 - 3}.5' for n in range(volume))}}}"


W, C, B = tensor("w", 2, 3, 3, 3), tensor("c", 1, 2, 1, 1), tensor("b", 4, 2, 1, 1)
BOXES = f"""net (float[1,3,4,4] x) => (float[1,5] best, float[1,5,4] chosen, float[1,5] row)
  <{W}, {C}, {B}> {{
  five = Constant <value_ints = [5]> ()
  flat = Constant <value_ints = [1, 16]> ()
  four = Constant <value_ints = [1, 16, 4]> ()
  wide = Constant <value_ints = [1, 5, 4]> ()
  two = Constant <value_ints = [2]> ()
  y = Conv <pads = [1, 1, 1, 1]> (x, w)
  scores = Conv(y, c)
  sigmoid = Sigmoid(scores)
  probabilities = Reshape(sigmoid, flat)
  places = Conv(y, b)
  boxes = Reshape(places, four)
  best, index = TopK <axis = 1> (probabilities, five)
  column = Unsqueeze(index, two)
  indices = Expand(column, wide)
  chosen = GatherElements <axis = 1> (boxes, indices)
  row = Cast <to = 1> (index)
}}"""
SUPPRESSED = f"""net (float[1,3,4,4] x) => (int64[?,3] kept, int64[?,3] all)
  <{tensor("c", 1, 3, 1, 1)}, {tensor("b", 4, 3, 1, 1)}> {{
  flat = Constant <value_ints = [1, 1, 16]> ()
  four = Constant <value_ints = [1, 16, 4]> ()
  shape = Shape(x)
  scores = Conv(x, c)
  places = Conv(x, b)
  flat_scores = Reshape(scores, flat)
  boxes = Reshape(places, four)
  kept = NonMaxSuppression(boxes, flat_scores)
  all = NonMaxSuppression(boxes, flat_scores)
  sum = Add(kept, shape)
}}"""
TOKENS = f"""net (int64[1,4] ids, int64[1,4] kinds) => (float[1,4,3] y)
  <{tensor("table", 9, 3)}, {tensor("w", 2, 3)}> {{
  e = Gather(table, ids)
  k = Gather(w, kinds)
  s = Add(e, k)
  y = Tanh(s)
}}"""
RATE = """net (float[1,4] x, int64 rate) => (float[1,4] y) {
  sixteen = Constant <value_int = 16000> ()
  is_fast = Equal(rate, sixteen)
  y = If (is_fast) <then_branch = g () => (p) { p = Neg(x) },
                    else_branch = h () => (p) { p = Abs(x) }>
}"""
SHAPED = """net (float[1,12] x, int64[2] shape) => (float[3,4] z) {
  y = Reshape(x, shape)
  z = Relu(y)
}"""
SORTED = """net (float[1,4] x) => (float[1,4] y) <int64 k> {
  s = ReduceSum(x)
  n = Cast <to = 7> (s)
  y, i = TopK(x, n)
}"""


def problems(path, capsys, *options):
    """Return the status of check, its problems without their place, and what it sums up."""
    status = main(["check", str(path), *options])
    found = capsys.readouterr()
    return status, found.err.replace("\n", " "), found.out


def tried(path, capsys, wanted, number="16000"):
    """Check a model as its message says; return what that was."""
    status, text, summary = problems(path, capsys)
    assert status == 2
    assert "; 1 problem\n" in summary
    option = re.search(rf"({wanted})", text)
    assert option is not None, text
    found = problems(path, capsys, *option[1].replace("=X", f"={number}").split())
    assert found[:2] == (0, ""), found
    return option[1]


@pytest.mark.parametrize("text", [BOXES, SUPPRESSED], ids=["sorted", "suppressed"])
def test_a_detector_is_cut_where_its_message_says(text, write, capsys):
    option = tried(write(text, opset=13), capsys, r"--outputs [\w,]+")
    assert "boxes" in option
    assert len(option.split(",")) == 2


def test_the_results_of_a_part_are_values_of_the_file(write, capsys):
    """None within a function, in which the operator is that has no hardware."""
    text = f"""net (float[1,3,4,4] x) => (float[1,2] z) <{tensor("w", 2, 3, 3, 3)}> {{
      y = Conv(x, w)
      t = Relu(y)
      z = local.best(t)
    }}
    <domain: "local", opset_import: ["" : 13]>
    best (t) => (z) {{
      flat = Flatten(t)
      k = Constant <value_ints = [2]> ()
      q = Sigmoid(flat)
      z, i = TopK(q, k)
    }}"""
    path = write(text, imports=', "local" : 1', opset=13)
    assert tried(path, capsys, r"--outputs [\w,]+") == "--outputs t"


def test_a_number_that_decides_what_is_computed_is_bound(write, capsys):
    assert tried(write(RATE), capsys, r"--bind \w+=X") == "--bind rate=X"


def test_a_batch_of_the_file(write, capsys):
    text = f"""net (float[4,3,4,4] x) => (float[4,2,1,1] z) <{tensor("w", 2, 3, 3, 3)}> {{
      y = Conv(x, w)
      z = MaxPool <kernel_shape = [2, 2]> (y)
    }}"""
    assert tried(write(text), capsys, r"--dim \S+") == "--dim x.0=1"


def test_lengths_of_sequences_are_bound(write, capsys):
    text = f"""net (float[5,1,2] x, int32[1] length) => (float[5,1,1,2] y)
      <{tensor("w", 1, 8, 2)}, {tensor("r", 1, 8, 2)}, {tensor("b", 1, 16)}> {{
      y = LSTM <hidden_size = 2> (x, w, r, b, length)
    }}"""
    assert tried(write(text), capsys, r"--bind \w+=X", number="5") == "--bind length=X"


def test_labels_that_are_looked_up_are_one_problem(write, capsys):
    text = f"""net (float[1,3] x) => (int64[1,1] label) <{tensor("w", 3, 2)}> {{
      y = MatMul(x, w)
      i = ArgMax <axis = 1> (y)
      names = Constant <value_ints = [20, 10]> ()
      label = Gather(names, i)
    }}"""
    assert tried(write(text), capsys, r"--outputs \w+") == "--outputs i"


def test_features_that_the_file_counts_wrong(write, capsys):
    text = """net (float[1,2] x) => (int64[1] label, float[1,3] scores) {
      label, scores = ai.onnx.ml.LinearClassifier
        <classlabels_ints = [0, 1, 2], post_transform = "NONE",
         coefficients = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1.5, 2.5, 3.5]> (x)
    }"""
    path = write(text, imports=', "ai.onnx.ml" : 1', opset=13)
    assert tried(path, capsys, r"--dim \S+") == "--dim x.1=4"


def test_numbers_that_are_not_those_of_the_channels(write):
    text = f"""net (float[1,3] x) => (float[3,1] y) <{tensor("n", 3)}> {{
      t = Transpose(x)
      y = BatchNormalization(t, n, n, n, n)
    }}"""
    with pytest.raises(NnefHwError, match=r"'n' has 3 numbers, but dimension 1 .*\[3, 1\] is 1; "):
        load(write(text, opset=15))


def test_integers_that_are_made_on_the_way_have_one_root(write, capsys):
    text = f"""net (float[1,4] x) => (float[1,4,2] z) <{tensor("table", 9, 2)}> {{
      q = Cast <to = 6> (x)
      y = Gather(table, q)
      z = Neg(y)
    }}"""
    status, text, summary = problems(write(text), capsys)
    assert (status, "; 1 problem\n" in summary) == (2, True)
    assert "cast 'q': it makes integers (1 more operator computes with it); let them" in text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (SHAPED, "make the input 'shape' a constant of the file; shapes of hardware are static"),
        (SORTED, "k 'n' is computed when the network runs; make it a constant"),
    ],
    ids=["a vector", "of samples"],
)
def test_what_is_no_number_is_not_bound(text, wanted, write):
    with pytest.raises(UnsupportedError) as info:
        load(write(text))
    assert wanted in str(info.value)
    assert "--bind" not in str(info.value)


def test_what_a_host_looks_up_is_named(write, capsys):
    status, text, summary = problems(write(TOKENS), capsys)
    assert (status, "2 problems" in summary) == (2, True)
    assert "export the network with 'e' [1, 4, 3] as its input" in text
    assert "export the network with 'k' [1, 4, 3] as its input" in text


@pytest.mark.parametrize(
    ("op", "domain", "wanted"),
    [
        ("MVAU_hls", "finn.custom_op.fpgadataflow.hls", "QONNX file from before FINN's steps"),
        ("XnorPopcountMatMul", "qonnx.custom_op.general", "QONNX file from before FINN's steps"),
        ("QuantLSTMCell", "onnx.brevitas", "let Brevitas quantize the weights only"),
        ("MultiHeadSelfAttention", "PACTOps", "from before it was made one of integers"),
        ("iNoNorm", "", "from before it was made one of integers"),
    ],
    ids=["finn", "qonnx", "brevitas", "pulp", "pulp without a domain"],
)  # fmt: skip
def test_operators_of_other_tools_alike_are_one_problem(op, domain, wanted, write):
    name = f"{domain}.{op}" if domain else op
    text = f"""net (float[1,4] x) => (float[1,4] z) {{
      y = {name}(x)
      z = {name}(y)
    }}"""
    with pytest.raises(UnsupportedError) as info:
        load(write(text, imports=f', "{domain}" : 1' if domain else ""))
    assert "(and 1 more like it); " in str(info.value)
    assert wanted in str(info.value)


def test_names_are_found_as_messages_have_them(write):
    proto = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 13]>
        net (float[1,4] x) => (float[1,4] z) { y = Relu(x)  z = Neg(y) }"""
    )
    proto.graph.node[0].output[0] = proto.graph.node[1].input[0] = "/head/Relu"
    assert load(write(proto), outputs=["head_Relu"]).outputs == ("head_Relu",)
    proto.graph.node[1].output[0] = proto.graph.output[0].name = "/head_Relu"
    with pytest.raises(NnefHwError, match="such as '/head_Relu', '/head/Relu'"):
        load(write(proto), outputs=["head_Relu"])


def test_each_file_that_is_missing_is_one_problem(write):
    proto = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["" : 13]>
        net (float[1,3] x) => (float[1,3] z)
          <{tensor("a", 1, 3)}, {tensor("b", 1, 3)}, {tensor("c", 1, 3)}> {{
          y = Sum(x, a, b)  z = Mul(y, c)
        }}"""
    )
    for item, file in zip(proto.graph.initializer, ("one", "one", "other"), strict=True):
        item.ClearField("float_data")
        item.data_location = onnx.TensorProto.EXTERNAL
        item.external_data.add(key="location", value=file)
    with pytest.raises(ErrorGroup) as info:
        load(write(proto))
    first, second = info.value.errors
    assert "no file 'one' (and 1 more like it); put it beside the model" in str(first)
    assert str(second).endswith("no file 'other'; put it beside the model")
