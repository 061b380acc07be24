"""The Python API: the same results as the command line, from what users have at hand."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import onnx
import pytest
from msgspec import UNSET

import nnef_hw as nh
from nnef_hw.api import plan as plan_module
from nnef_hw.errors import CheckError, SampleError, TargetError, UsageError
from nnef_hw.flow.options import BuildOptions
from nnef_hw.flow.pipeline import build as build_files
from nnef_hw.frontend import save
from nnef_hw.report.model.conversion import to_json
from nnef_hw.system.workers import Here
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system


@pytest.fixture
def samples(sources):
    """Arrays by name."""
    return dict(np.load(sources / "samples.npz"))


def test_names_are_there_and_nothing_is_imported_before_its_use():
    program = (
        "import sys, nnef_hw as nh; print(sorted(m for m in sys.modules if 'nnef_hw.' in m)); "
        "nh.open_device; print('amaranth' in sys.modules, set(nh.__all__) <= set(dir(nh)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines() == ["[]", "False True"]
    assert all(getattr(nh, name) is not None for name in nh.__all__)
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        _ = nh.lode


def test_a_model_knows_its_interface(model):
    assert model.inputs == {"image": (1, 1, 6, 6)}
    assert list(model.outputs.values()) == [(1, 4)]
    check = model.check()
    assert check
    assert check.architectures["streaming"]
    assert check.boards == []
    asked = model.check(["icebreaker", "ulx3s_85f"])
    assert asked
    assert [outlook.board for outlook in asked.boards] == ["icebreaker", "ulx3s_85f"]
    assert "per second" in repr(asked)
    with pytest.raises(UsageError, match="board 'fomu' is not known"):
        model.check("fomu")


def test_a_model_that_fits_no_board_that_is_asked_is_false(tmp_path):
    g = GraphBuilder("wide")
    x = g.op("linear", g.input("x", [1, 150]), np.ones([150, 150]), np.zeros([1, 150]))
    save(g.build(x), tmp_path / "m.nnef.tgz")
    model = nh.load(tmp_path / "m.nnef.tgz")
    assert model.check()
    assert not model.check("fomu_pvt")
    assert "does not fit fomu_pvt" in repr(model.check("fomu_pvt"))


def test_real_and_fixed_results_are_those_of_the_references(model, fixed, samples):
    (name,) = model.outputs
    real, codes = model.run(samples["inputs"])[name], fixed.run_codes(samples)[name]
    assert real.shape == codes.shape == (len(samples["labels"]), 4)
    qtype = fixed.graph.tensor(name).qtype
    np.testing.assert_array_equal(fixed.run(samples["inputs"])[name], qtype.dequantize(codes))
    # A few results are outside of the range that was calibrated.
    assert np.median(np.abs(fixed.run(samples)[name] - real)) < qtype.scale


def test_results_have_one_form_whether_real_or_fixed(rng, tmp_path):
    """An input without a batch extent has an output with one: none of them is in results."""
    g = GraphBuilder()
    x = g.reshape(g.input("x", [3, 4]), [1, 12])
    save(g.build(g.op("linear", x, rng.normal(size=(5, 12)), 0.0)), tmp_path / "net.nnef.tgz")
    model = nh.load(tmp_path / "net.nnef.tgz")
    x = rng.normal(size=(20, 3, 4))
    real, fixed = (own.run(x) for own in (model, model.quantize(x)))
    [name] = model.outputs
    assert model.outputs[name] == (1, 5)
    assert real[name].shape == fixed[name].shape == (20, 5)
    assert np.abs(real[name] - fixed[name]).max() < 0.1


def test_samples_come_in_every_way(model, samples, sources):
    (name,) = model.inputs
    inputs, labels = samples["inputs"], samples["labels"]
    ways = [
        sources / "samples.npz", str(sources / "samples.npz"), samples, (inputs, labels),
        {name: inputs, "labels": labels}, inputs.tolist(),
    ]  # fmt: skip
    assert len({model.quantize(way).hash for way in ways}) == 1
    with pytest.raises(SampleError, match="tuple of 3"):
        model.quantize((inputs, labels, labels))
    with pytest.raises(SampleError, match=r"samples: array 'inputs' has shape \[2, 3\]"):
        model.quantize(np.zeros([2, 3]))
    with pytest.raises(SampleError, match="samples"):
        model.quantize()


def test_options_of_quantization(model, samples):
    narrow = model.quantize(samples, weight_bits=4)
    assert set(narrow.weight_bits.values()) == {4}
    with pytest.raises(UsageError, match="no option 'weight_bit'") as caught:
        model.quantize(samples, weight_bit=4)
    assert "did you mean 'weight_bits'" in caught.value.remedy
    with pytest.raises(UsageError, match=r"weight_bits must be in 1\.\.8, not 9"):
        model.quantize(samples, weight_bits=9)
    with pytest.raises(UsageError, match="board is for a search"):
        model.quantize(samples, board="icebreaker")
    searched = model.quantize(samples, accuracy_drop=100.0, board="icebreaker")
    assert min(searched.weight_bits.values()) < 8


def test_what_quantization_loses(fixed, samples):
    compared = fixed.compare()
    assert compared.accuracy.metric == "accuracy"
    assert min(value for value in compared.sqnr_db.values() if value is not None) > 20
    assert fixed.compare(samples).accuracy is not None
    assert fixed.compare(samples["inputs"]).accuracy is None


def test_a_plan_is_that_of_a_build(plan, build):
    assert plan.interval == build.report.cycles_per_inference
    assert plan.latency == build.report.latency_cycles
    assert plan.inferences_per_second == plan.clock_mhz * 1e6 / plan.interval
    later = {"resources", "seconds", "commands", "simulation", "accuracy", "layers", "noise"}
    early = {name for name, value in vars(plan.report).items() if value is not UNSET}
    for key in early - later:
        assert getattr(plan.report, key) == getattr(build.report, key), key
    # A build reads its own copy of the model, whose lines are others.
    for mine, found in zip(plan.layers, build.report.layers, strict=True):
        assert replace(mine, location=None) == replace(found, location=None)
    assert plan.resources["lut"].estimated == build.report.resources["lut"].estimated


def test_wishes_are_kept(fixed):
    fast = fixed.schedule("ulx3s_85f")
    slow = fixed.schedule("ulx3s_85f", target_fps=10, arch="streaming")
    assert slow.interval > fast.interval
    assert slow.resources["lut"].estimated < fast.resources["lut"].estimated
    assert fixed.schedule("none", device="ecp5-25k", clock_mhz=33).clock_mhz == 33
    assert fixed.schedule("icebreaker", arch="engine").arch == "engine"
    soon = fixed.schedule("ulx3s_85f", goal="latency")
    assert soon.latency / soon.clock_mhz <= fast.latency / fast.clock_mhz
    with pytest.raises(UsageError, match="which target_fps would decide; omit target_fps, or"):
        fixed.schedule("ulx3s_85f", goal="latency", target_fps=10)
    with pytest.raises(UsageError, match="no architecture 'engin'"):
        fixed.schedule("icebreaker", arch="engin")
    with pytest.raises(UsageError, match="clock_mhz must be positive"):
        fixed.schedule("icebreaker", clock_mhz=-1)
    with pytest.raises(TargetError, match="does not reach"):
        fixed.schedule("icebreaker", target_fps=1e9, arch="streaming")


def test_a_plan_is_simulated(plan, fixed, samples):
    """Codes and cycles are compared on the way."""
    inputs = samples["inputs"][:3]
    for stall in (0.0, 0.3):
        found = plan.simulate(inputs, stall=stall)
        for name, expected in fixed.run(inputs).items():
            assert np.array_equal(found.outputs[name], expected)
        assert (found.cycles == plan.latency + 2 * plan.interval) == (not stall)


def test_a_plan_of_batches_is_simulated(fixed, samples):
    """The last batch is filled up."""
    inputs = samples["inputs"][:3]
    found = fixed.schedule("icebreaker", arch="engine", batch=2).simulate(inputs)
    for name, expected in fixed.run(inputs).items():
        assert np.array_equal(found.outputs[name], expected)


def test_other_cycles_than_planned_are_an_error(plan, samples, monkeypatch):
    run = plan_module.run_component

    def late(*given, **options):
        found = run(*given, **options)
        return replace(found, cycles=found.cycles + 1)

    monkeypatch.setattr(plan_module, "run_component", late)
    with pytest.raises(CheckError, match=f"1 frames took {plan.latency + 1} cycles"):
        plan.simulate(samples["inputs"][:1])


def test_hardware_is_the_fixed_model(build, fixed, samples):
    assert build.report.simulation.bit_exact
    (name,) = fixed.run(samples)
    for on in ("fixed", "rtl"):
        found = build.run(samples["inputs"][:3], on=on)[name]
        np.testing.assert_array_equal(found, fixed.run(samples["inputs"][:3])[name])
    assert build.simulate(samples["inputs"], limit=4, stall=0.3).frames == 4
    assert build.simulate().bit_exact
    compared = build.compare(samples)
    assert compared.accuracy.rtl == compared.accuracy.fixed
    assert list(to_json(compared)) == [
        "samples", "bit_exact", "mismatches", "calibration_samples", "evaluation_samples",
        "calibrated", "accuracy", "mae", "layers", "steps", "warnings",
    ]  # fmt: skip
    assert list(to_json(compared)["accuracy"]) == ["float", "fixed", "rtl"]
    with pytest.raises(UsageError, match="needs --port"):
        build.run(samples["inputs"], on="device")
    for opened in (lambda: nh.open_device(build, "nowhere"), lambda: build.open_device("nowhere")):
        with pytest.raises(UsageError, match="'nowhere'"), opened():
            pass
    with pytest.raises(UsageError, match="nothing runs on 'gpu'"):
        build.run(samples["inputs"], on="gpu")


def test_a_build_is_that_of_the_command_line(build, sources, tmp_path):
    options = BuildOptions(
        sources / "tiny.nnef.tgz", "icebreaker", tmp_path / "build",
        calibrate=sources / "samples.npz", bitstream=False, frames="all",
    )  # fmt: skip
    build_files(options)
    for file in ("rtl/top.v", "plan.json", "manifest.json", "board/board_top.v"):
        assert (build.path / file).read_bytes() == (options.out / file).read_bytes()
    opened = nh.open_build(options.out)
    assert opened.report.cycles_per_inference == build.report.cycles_per_inference
    assert opened.verilog == build.verilog
    assert opened.bitstream is None
    assert nh.open_build(opened).path == opened.path


def test_other_formats_of_the_same_source_are_built_anew(model, samples, tmp_path):
    texts = set()
    for bits in (8, 4):
        plan = model.quantize(samples, weight_bits=bits).schedule("icebreaker")
        texts.add(plan.build(tmp_path / "build", bitstream=False, frames=2).verilog)
    assert len(texts) == 2


def test_what_boards_would_make_of_it(model, samples, plan):
    survey = model.plan(["icebreaker", "ulx3s_85f"], samples)
    assert survey["icebreaker"].cycles_per_inference == plan.interval
    assert [outlook.board for outlook in survey.fitting] == ["ulx3s_85f", "icebreaker"]
    rough = model.plan("icebreaker")
    assert rough["icebreaker"].cycles_per_inference == plan.interval
    with pytest.raises(KeyError):
        _ = rough["ulx3s_85f"]
    refused = model.plan("icebreaker", target_fps=1e9)["icebreaker"]
    assert not refused.fits
    assert "does not reach" in refused.refusal
    assert refused.remedy


def test_designs_are_compared(model, samples, plan, tmp_path):
    found = model.explore(
        samples, ["icebreaker"], weight_bits=(8, 3), until="planned", out=tmp_path / "out",
        pool=Here(), arch="streaming",
    )  # fmt: skip
    fastest = found.points[0]
    assert (fastest.cycles_per_inference, fastest.weight_bits) == (plan.interval, 8)
    assert {point.weight_bits for point in found.points} == {8, 3}
    assert found.front
    assert all(point in found.points for point in found.front)
    rebuilt = eval(fastest.build.partition(".build(")[0], {"model": model, "samples": samples})
    assert rebuilt.interval == fastest.cycles_per_inference
    assert "inferences/s" in repr(found)
    assert found._repr_html_().startswith("<iframe")
    assert (tmp_path / "out" / "index.html").is_file()
    with pytest.raises(UsageError, match="no option 'weight_bit'"):
        model.explore(samples, "icebreaker", weight_bit=4)


def test_every_value_shows_itself(model, fixed, plan, build):
    survey = model.plan("icebreaker")
    for value in (model, model.check(), fixed, fixed.compare(), plan, build, survey):
        text, page = repr(value), value._repr_html_()
        assert text
        assert "Traceback" not in text
        assert page.startswith(("<pre", "<iframe"))
    assert "conv" in repr(model)
    assert f"{plan.interval:,} cycles" in repr(plan)
    assert "bit-exact" in repr(build)
    assert "per second" in repr(survey)


def test_a_network_of_windows_runs_step_by_step(tmp_path, rng):
    g = GraphBuilder("taps")
    x = g.conv(g.input("x", [1, 2, 12, 1]), rng.normal(size=[3, 2, 4, 1]), name="first")
    save(g.build(g.conv(x, rng.normal(size=[2, 3, 9, 1]), name="last")), tmp_path / "taps.nnef.tgz")
    windows = rng.normal(size=[20, 2, 12, 1])
    fixed = nh.load(tmp_path / "taps.nnef.tgz").quantize(windows)
    step = fixed.steps()
    ((name, codes),) = fixed.run_codes(windows).items()
    found = step.run_codes(windows)[name]
    assert found.shape == (20, 12, 2, 1, 1)
    np.testing.assert_array_equal(found[:, -1], codes)
    plan, whole = (model.schedule("ulx3s_85f", arch="streaming") for model in (step, fixed))
    with pytest.raises(UsageError, match="has states"):
        plan.simulate(windows[:2])
    build = plan.build(tmp_path / "build", bitstream=False, frames=3)
    assert build.report.simulation.bit_exact
    assert build.report.stream.window_cycles == whole.interval > plan.interval
    np.testing.assert_array_equal(build.run(windows[:2])[name], step.run(windows[:2])[name])


class TestSources:
    """Models that are not files."""

    def test_bytes_are_known_by_their_beginning(self, sources, proto):
        archive = (sources / "tiny.nnef.tgz").read_bytes()
        assert nh.load(archive).inputs == {"image": (1, 1, 6, 6)}
        assert nh.load(bytearray(proto.SerializeToString())).inputs == {"x": (1, 3)}

    def test_onnx_models(self, proto):
        assert isinstance(proto, onnx.ModelProto)
        x = np.arange(6.0).reshape(2, 3)
        np.testing.assert_array_equal(nh.load(proto).run(x)["y"], x[:, :2])

    def test_models_of_keras(self, proto):
        """With PyTorch as its backend a model of Keras is a module of PyTorch, too."""

        class Module:
            pass

        class Model(Module):
            has_run = True

            def export(self, path, **options):
                assert options == {"format": "onnx", "verbose": False}
                if not self.has_run:
                    raise ValueError("The model provided has never called.")
                onnx.save(proto, path)

        Module.__module__, Model.__module__ = "torch.nn.modules.module", "keras.src.models.model"
        net = type("Net", (Model,), {"__module__": "__main__"})()
        assert nh.load(net).outputs == {"y": (1, 2)}
        net.has_run = False
        with pytest.raises(UsageError, match=r"Keras cannot export Net: .* never called"):
            nh.load(net)

    @pytest.mark.filterwarnings("ignore")  # Keras has many
    def test_models_of_the_real_keras(self, rng):
        keras = pytest.importorskip("keras", reason="the tests need no Keras")
        layers = keras.layers
        net = keras.Sequential([
            keras.Input((6, 6, 1)), layers.Conv2D(3, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(), layers.Flatten(), layers.Dense(4, activation="softmax"),
        ])  # fmt: skip
        x = rng.normal(size=(40, 6, 6, 1)).astype(np.float32)
        expected = net.predict(x, verbose=0)
        (found,) = nh.load(net).run(x).values()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)

    def test_anything_else_is_refused(self):
        with pytest.raises(UsageError, match="dict objects are not models"):
            nh.load({})


def test_a_value_in_a_notebook_is_shown_by_the_notebook_alone(model, monkeypatch):
    """Rich would show what it prints by itself, so that each value stood there several times."""
    pytest.importorskip("IPython")
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda *values: shown.append(values))
    text, page = repr(model), model._repr_html_()
    assert shown == []
    assert text.startswith("tiny")
    assert "font-family" in page
    assert "white-space:pre;" in page
