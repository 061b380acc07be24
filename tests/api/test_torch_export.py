"""Modules of PyTorch: exported behind the scenes, and nothing but the result is left of it."""

import contextlib
import inspect
import logging
import os
import sys
import types
import warnings

import numpy as np
import onnx
import pytest

import nnef_hw as nh
from nnef_hw.errors import UsageError

pytestmark = pytest.mark.system
FIND_SPEC = "nnef_hw.api.torch_export.find_spec"


@pytest.fixture
def pytorch(monkeypatch, proto):
    """A module of a PyTorch whose exporters are replaced: the tests need no PyTorch."""

    class Module:
        training = True

        def modules(self):
            return [self]

        def eval(self):
            self.training = False

        def __call__(self, *inputs):
            if "bad" in inputs:
                raise RuntimeError("expected 1 channel\nand a stack trace")

        def forward(self, image, mask=None):
            raise AssertionError("the exporter runs it")

    class Attention:
        is_fast = True

        def get_fastpath_enabled(self):
            return self.is_fast

        def set_fastpath_enabled(self, value):
            self.is_fast = value

    exported = []

    def export(module, inputs, path, *, dynamo, input_names, output_names, **options):
        sys.stdout.write("graph at exception")
        os.write(sys.__stdout__.fileno(), b"written by a library in C")
        warnings.warn("this exporter is old", DeprecationWarning, stacklevel=1)
        logging.getLogger("torch").critical("torchvision is not installed")
        if "bad" in inputs:
            raise RuntimeError("the trace failed")
        if "norm" in inputs and not dynamo:
            raise RuntimeError("rms_norm is not supported [Caused by the value 'input'")
        if "unknown" in inputs:
            raise ValueError("fft is not supported\nand the graph")
        seen = list(inspect.signature(module.forward).parameters)
        exported.append((inputs, dynamo, input_names, output_names, seen, options))
        assert not module.training
        assert not attention.is_fast
        proto.graph.name = "main_graph"
        onnx.save(proto, path)

    attention = Attention()
    torch = types.SimpleNamespace(
        onnx=types.SimpleNamespace(export=export),
        backends=types.SimpleNamespace(mha=attention),
        no_grad=contextlib.nullcontext,
        as_tensor=lambda value: value,
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    Module.__module__ = "torch.nn.modules.module"
    net = type("Net", (Module,), {"__module__": "__main__"})()
    yield types.SimpleNamespace(net=net, exported=exported)
    assert net.training
    assert "forward" not in vars(net)
    assert attention.is_fast


def test_a_module_is_run_on_the_example_alone(pytorch):
    model = nh.load(pytorch.net, example="tensor")
    assert (model.name, model.outputs) == ("Net", {"y": (1, 2)})
    (exported,) = pytorch.exported
    assert exported == (("tensor",), False, ["image"], ["output"], ["inputs"], {})
    with pytest.raises(
        UsageError, match=r"Net does not run on the example: expected 1 channel; give"
    ):
        nh.load(pytorch.net, example="bad")
    with pytest.raises(UsageError, match="exported by running it"):
        nh.load(pytorch.net)


def test_the_other_exporter_gets_what_tracing_does_not_know(pytorch, monkeypatch):
    monkeypatch.setattr(FIND_SPEC, lambda name: True if name == "onnxscript" else None)
    assert nh.load(pytorch.net, example=("norm", "mask")).name == "Net"
    options = {"external_data": False}
    names = ["image", "mask"]
    assert pytorch.exported == [(("norm", "mask"), True, names, ["output"], names, options)]
    with pytest.raises(UsageError, match="Net: fft is not supported; replace this part"):
        nh.load(pytorch.net, example="unknown")
    with pytest.raises(UsageError, match="expected 1 channel"):
        nh.load(pytorch.net, example="bad")


def test_what_the_other_exporter_needs_is_the_remedy(pytorch, monkeypatch):
    monkeypatch.setattr(FIND_SPEC, lambda name: None)
    with pytest.raises(UsageError, match=r"rms_norm is not supported; install .* onnxscript"):
        nh.load(pytorch.net, example="norm")


def test_nothing_is_written_to_the_console(pytorch, capfd, caplog):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nh.load(pytorch.net, example="tensor")
        with pytest.raises(UsageError):
            nh.load(pytorch.net, example="bad")
    assert capfd.readouterr() == ("", "")
    assert not [item for item in caught if "old" in str(item.message)]
    assert not caplog.records
    sys.stdout.write("as before")
    logging.getLogger("torch").critical("told again")
    assert capfd.readouterr().out == "as before"
    assert len(caplog.records) == 1


def test_modules_of_the_real_pytorch(rng):
    torch = pytest.importorskip("torch", reason="the extra train is not installed")
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 3, 3, padding=1), torch.nn.BatchNorm2d(3), torch.nn.ReLU(),
        torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(27, 4),
    )  # fmt: skip
    x = rng.normal(size=(40, 1, 6, 6)).astype(np.float32)
    for example in (torch.from_numpy(x[:1]), x[:1], (torch.from_numpy(x[:1]),)):
        model = nh.load(net, example=example)
        assert (model.name, list(model.outputs)) == ("Sequential", ["output"])
    assert net.training
    with torch.no_grad():
        expected = net.eval()(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(model.run(x)["output"], expected, rtol=1e-4, atol=1e-5)
    codes = [model.quantize(way).run_codes(x)["output"] for way in (x, torch.from_numpy(x))]
    np.testing.assert_array_equal(*codes)
    with pytest.raises(UsageError, match=r"Sequential does not run on the example: .* 1 channels"):
        nh.load(net, example=np.zeros((1, 2, 6, 6), np.float32))


@pytest.mark.parametrize("norm_first", [False, True])
def test_attention_of_the_real_pytorch(norm_first, capfd):
    torch = pytest.importorskip("torch", reason="the extra train is not installed")
    torch.manual_seed(1)
    net = torch.nn.TransformerEncoderLayer(8, 2, 16, norm_first=norm_first, batch_first=True)
    net.norm1.eval()
    x = torch.randn(3, 5, 8)
    model = nh.load(net, example=x[:1])
    assert [net.training, net.norm1.training] == [True, False]
    assert torch.backends.mha.get_fastpath_enabled()
    with torch.no_grad():
        expected = net.eval()(x).numpy()
    # PyTorch computes with 24 bits.
    np.testing.assert_allclose(model.run(x.numpy())["output"], expected, atol=1e-5)
    assert model.check()
    with pytest.raises(UsageError, match="Layer does not run on the example"):
        nh.load(net, example=x[:1, :, :6])
    assert capfd.readouterr() == ("", "")
