"""examples/person_sensor: the published network, with every code of LiteRT, on a board."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

import nnef_hw as nh
from nnef_hw.reference import run_fixed
from nnef_hw.samples.png import write_png

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "examples" / "person_sensor" / "person_detect.tflite"
SIZE = (96, 96)


def commands():
    """Return the commands of the README, as lists of words."""
    text = (MODEL.parent / "README.md").read_text().replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.startswith("    nnef-hw ")]
    return [shlex.split(line)[1:] for line in lines]


def pictures(rng, count):
    """Grey pictures with edges and slopes: noise of several sizes, one upon the other."""
    found = np.zeros((count, *SIZE))
    for size in (3, 6, 12, 24, 48, 96):
        noise = rng.normal(size=(count, size, size)) * 96 / size
        found += noise.repeat(96 // size, axis=1).repeat(96 // size, axis=2)
    low, high = found.min(axis=(1, 2), keepdims=True), found.max(axis=(1, 2), keepdims=True)
    return ((found - low) / (high - low) * 255).astype(np.int64)


@pytest.fixture
def shown(rng):
    return pictures(rng, 24)


def bias_of_one_axis(content):
    """Return the file as LiteRT reads it: a bias has one axis, and its scales lie along that."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(content, 0))
    for tensor in model.subgraphs[0].tensors:
        if len(tensor.shape) == 1 and tensor.quantization is not None:
            tensor.quantization.quantizedDimension = 0
    builder = flatbuffers.Builder(len(content))
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def test_every_code_is_that_of_litert(shown):
    interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="no LiteRT here")
    runtime = interpreter.Interpreter(
        model_content=bias_of_one_axis(MODEL.read_bytes()), num_threads=1,
        experimental_op_resolver_type=interpreter.OpResolverType.BUILTIN_REF,
    )  # fmt: skip
    runtime.allocate_tensors()
    [given], [result] = runtime.get_input_details(), runtime.get_output_details()
    fixed = nh.load(MODEL).quantize().graph
    [found] = run_fixed(fixed, {"input": (shown - 128)[..., None]}).values()
    for picture, codes in zip(shown, found, strict=True):
        runtime.set_tensor(given["index"], (picture - 128).astype(np.int8)[None, ..., None])
        runtime.invoke()
        np.testing.assert_array_equal(runtime.get_tensor(result["index"])[0], codes)
    assert len(np.unique(found)) > 8


@pytest.mark.nightly
@pytest.mark.system
@pytest.mark.verilator
def test_the_board_sees(cli, shown, monkeypatch, tmp_path):
    """The README's commands, but for the bitstream."""
    build, sim = commands()
    out, folder = tmp_path / "build", tmp_path / "pictures"
    folder.mkdir()
    for n, picture in enumerate(shown[:2]):
        write_png(folder / f"{n}.png", picture[..., None].astype(np.uint8))
    monkeypatch.chdir(ROOT)
    result = cli(*build[: build.index("--out")], "--no-bitstream", "--frames", 1, "--out", out)
    assert result.status == 0, result.err
    result = cli(*sim[:1], out, "--images", folder, "--json")
    assert result.status == 0, result.err
    told = json.loads(result.out)
    assert told["equal"]
    assert told["computed"] + told["lost"] == told["sent"]
    assert [picture["name"] for picture in told["pictures"]] == ["0.png", "1.png"]
