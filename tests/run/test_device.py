import errno
import json
import os
import shutil
import subprocess
import sys
import tty

import numpy as np
import pytest
import serial
from msgspec import UNSET
from serial.tools import list_ports, list_ports_common

from nnef_hw.boards.interfaces import Uart
from nnef_hw.errors import SampleError, UsageError
from nnef_hw.host.link import Timing
from nnef_hw.host.manifest import read_manifest
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.report.model.conversion import to_json
from nnef_hw.run import LinkError, open_device
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.bench_device import bench_device
from nnef_hw.run.device import Device
from nnef_hw.sim.board_runner import BoardTransport
from nnef_hw.sim.pty_board import PtyBoard

pytestmark = pytest.mark.system

HASTY = Timing(silence=0.001, reply=0.002, retries=1)


@pytest.fixture
def built(make_build):
    """A build for an iCEBreaker."""
    return make_build("linear")


@pytest.fixture
def terminal():
    """A serial port that nothing is connected to."""
    master, slave = os.openpty()
    tty.setraw(slave)
    yield os.ttyname(slave)
    os.close(master)
    os.close(slave)


def simulated(built):
    verilog = (built.path / "board" / "board_top.v").read_text()
    manifest = read_manifest(built.path)
    clocks = {"clk_hz": manifest.oscillator_mhz * 1e6, "core_hz": manifest.clock_mhz * 1e6}
    return {"verilog": verilog, **clocks}


def with_manifest(built, folder, **changes):
    """Copy a build's manifest with changes."""
    value = json.loads((built.path / "manifest.json").read_text())
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps({**value, **changes}))
    return folder


@pytest.mark.verilator
def test_batches_one_after_the_other(built):
    fixed = BuildFolder.open(built.path).fixed
    codes = quantize_inputs(fixed, built.inputs)
    expected = run_fixed(fixed, codes)["scores"]
    images = built.inputs["image"]
    with PtyBoard(**simulated(built)) as board:
        timing = Timing(silence=0.001).scaled(board.slowness)
        for _ in range(2):  # a host comes and goes, the board stays
            with open_device(built.path, board.port, timing=timing) as device:
                found = device.run_codes({"image": codes["image"][:3]})["scores"]
                np.testing.assert_array_equal(found, expected[:3])
                real = fixed.tensor("scores").qtype.dequantize(expected)
                np.testing.assert_array_equal(device.run(images[3:5])["scores"], real[3:5])
                np.testing.assert_array_equal(
                    device.run({"image": images[5:6]})["scores"], real[5:6]
                )
                counters = device.counters()
        assert (counters.frames, counters.damaged) == (6, 0)
        assert device.host.repeats == 0


@pytest.mark.verilator
def test_features_have_scales_of_their_own(make_build):
    """A board takes real numbers of unlike ranges, each as codes of its own scale."""
    built = make_build("features")
    fixed = BuildFolder.open(built.path).fixed
    codes = quantize_inputs(fixed, built.inputs)
    assert fixed.features["image"].axis == 1
    assert codes["image"][:, 0].std() > 40
    assert codes["image"][:, 1].std() > 40
    expected = fixed.tensor("scores").qtype.dequantize(run_fixed(fixed, codes)["scores"])
    with open_device(built.path, "sim") as device:
        found = device.run(built.inputs["image"][:5])["scores"]
    np.testing.assert_array_equal(found, expected[:5])
    entry = json.loads((built.path / "manifest.json").read_text())["inputs"][0]["qtype"]
    assert entry["scale"] == list(fixed.features["image"].scale)
    assert entry["zero_point"] == list(fixed.features["image"].zero_point)


@pytest.mark.verilator
def test_several_inputs_are_named(make_build):
    built = make_build("ports")
    short = {**built.inputs, "mask": built.inputs["mask"][:7]}
    with open_device(built.path, "sim") as device:
        with pytest.raises(SampleError, match="has 2 inputs; name 'image' and 'mask'"):
            device.run(built.inputs["image"])
        with pytest.raises(SampleError, match=r"different numbers of .*'image': 40, 'mask': 7"):
            device.run(short)


@pytest.mark.verilator
def test_three_megabaud(make_build):
    built = make_build("conv", link=Uart(3_000_000))
    fixed = BuildFolder.open(built.path).fixed
    codes = {"image": quantize_inputs(fixed, built.inputs)["image"][:10]}
    with open_device(built.path, "sim") as device:
        assert device.manifest.link["baud"] == 3_000_000
        np.testing.assert_array_equal(
            device.run_codes(codes)["out"], run_fixed(fixed, codes)["out"]
        )
        assert device.host.repeats == 0


@pytest.mark.verilator
def test_host_needs_nothing_but_numpy_and_pyserial(built):
    program = f"""
import sys
for name in ("amaranth", "lark", "rich", "jinja2", "cocotb", "verilator", "onnx", "pyosys"):
    sys.modules[name] = None
import numpy
from nnef_hw.run import open_device
from nnef_hw.host.link import Timing
timing = Timing(silence=0.001).scaled(float(sys.argv[2]))
with open_device({str(built.path)!r}, sys.argv[1], timing=timing) as b:
    print(b.run(numpy.zeros([2, 2, 5, 5]))["scores"].shape)
"""
    with PtyBoard(**simulated(built)) as board:
        arguments = [sys.executable, "-c", program, board.port, str(board.slowness)]
        result = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert (result.stderr, result.stdout) == ("", "(2, 5)\n")


@pytest.mark.verilator
def test_damaged_packets_are_counted_on_both_sides(built):
    class Line:
        """Flips a bit in the CRC of every first attempt."""

        def __init__(self, board):
            self.read = board.read
            self.board, self.last = board, b""

        def write(self, data):
            fresh, self.last = data != self.last, data
            self.board.write(data[:-1] + bytes([data[-1] ^ fresh]))

    fixed = BuildFolder.open(built.path).fixed
    codes = {"image": quantize_inputs(fixed, built.inputs)["image"][:3]}
    timing = Timing(silence=0.015, reply=0.002, stall=0.002, pause=20e-6)
    with BoardTransport(**simulated(built)) as board:
        device = Device(read_manifest(built.path), Line(board), timing)
        found = device.run_codes(codes)["scores"]
        np.testing.assert_array_equal(found, run_fixed(fixed, codes)["scores"])
        repeats = device.host.repeats
        assert device.counters().damaged == repeats + 1 > 6


@pytest.mark.verilator
def test_wrong_bitstream_is_named(built, tmp_path):
    other = with_manifest(built, tmp_path / "other", generator="somebody else")
    with PtyBoard(**simulated(built)) as board:
        timing = Timing(silence=0.001).scaled(board.slowness)
        with (
            pytest.raises(LinkError, match=r"board runs build \w+, not \w+; flash the build first"),
            open_device(other, board.port, timing=timing),
        ):
            pass


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("inputs", "match"),
    [
        (np.zeros((3, 2, 5, 4)), r"input 'image' has shape \[3, 2, 5, 4\], not \[N, 2, 5, 5\]"),
        ({"picture": np.zeros((3, 2, 5, 5))}, "no samples for input 'image'"),
        (np.full((1, 2, 5, 5), np.nan), "input 'image' holds NaN"),
        (np.zeros((0, 2, 5, 5)), "there are no samples"),
    ],
    ids=["shape", "name", "nan", "none"],
)
def test_wrong_samples_are_refused(inputs, match, built):
    with (
        open_device(built.path, "sim") as device,
        pytest.raises(SampleError, match=match),
    ):
        device.run(inputs)


@pytest.mark.verilator
def test_silent_board(built, terminal):
    match = "board does not answer IDENTIFY after 2 attempts; check that it is connected, flashed"
    with (
        pytest.raises(LinkError, match=match),
        open_device(built.path, terminal, timing=HASTY),
    ):
        pass


@pytest.mark.verilator
def test_port_that_somebody_has(built, terminal):
    with (
        serial.Serial(terminal, exclusive=True),
        pytest.raises(UsageError, match="is used by another program; close that program"),
        open_device(built.path, terminal, timing=HASTY),
    ):
        pass


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("vendor", "match"),
    [
        (0x0403, r'ATTRS\{idVendor\}=="0403", TAG\+="uaccess"\' into /etc/udev/rules.d/70-nnef-hw'),
        (None, r'KERNEL=="ttyUSB\*\|ttyACM\*"'),
    ],
    ids=["usb", "other"],
)
def test_port_without_permission_gives_the_udev_rule(vendor, match, built, monkeypatch):
    def refuse(*_, **__):
        raise serial.SerialException(errno.EACCES, "could not open port")

    port = list_ports_common.ListPortInfo("/dev/ttyUSB7")
    port.vid = vendor
    monkeypatch.setattr(serial, "Serial", refuse)
    monkeypatch.setattr(list_ports, "comports", lambda: [port])
    with (
        pytest.raises(UsageError, match="may not be opened by this user") as error,
        open_device(built.path, "/dev/ttyUSB7"),
    ):
        pass
    assert error.match(match)


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("port", "match"),
    [
        ("/dev/ttyUSB77", "'/dev/ttyUSB77' does not exist; "),
        ("/dev/null", r"'/dev/null' is not a serial port: .*nappropriate ioctl"),
    ],
)
def test_port_that_is_none(port, match, built):
    with pytest.raises(UsageError, match=match), open_device(built.path, port):
        pass


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda path: path.unlink(), "is not a build: it has no manifest.json"),
        (lambda path: path.write_text("{"), "manifest.json' is damaged; run nnef-hw build again"),
        (lambda path: path.write_text('{"format": 99}'), "has format 99, not 1"),
    ],
    ids=["none", "damaged", "version"],
)
def test_manifest_that_cannot_be_read(change, match, built, tmp_path):
    shutil.copy(built.path / "manifest.json", tmp_path)
    change(tmp_path / "manifest.json")
    with pytest.raises(UsageError, match=match), open_device(tmp_path, "sim"):
        pass


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("head", "board"),
    [
        ("linear", "icebreaker"),
        ("ports", "icebreaker"),
        pytest.param("linear", "ulx3s_85f", marks=pytest.mark.nightly),
    ],
)
def test_replay_shows_the_cycles_of_the_core(head, board, make_build):
    built = make_build(head, board)
    result = bench_device(built.path, "sim", frames=300, link_frames=2)
    plan = BuildFolder.open(built.path).plan
    assert result.cycles_per_inference == plan.interval
    assert result.inferences_per_second == pytest.approx(plan.clock_mhz * 1e6 / plan.interval)
    assert [layer.name for layer in result.layers] == [block.name for block in plan.blocks]
    assert all(layer.busy_cycles is UNSET for layer in result.layers)
    assert "busy_cycles" not in to_json(result)["layers"][0]


@pytest.mark.verilator
@pytest.mark.parametrize("head", [pytest.param("linear", marks=pytest.mark.nightly), "ports"])
def test_layers_work_wait_and_starve_as_predicted(head, make_build):
    built = make_build(head, "ulx3s_85f", layer_counters=True)
    result = bench_device(built.path, "sim", frames=20, link_frames=2)
    for layer in result.layers:
        for state in ("busy", "waiting", "starved"):
            assert getattr(layer, f"{state}_cycles") == getattr(layer, f"predicted_{state}_cycles")
    assert all(layer.busy_cycles for layer in result.layers)
    assert any(layer.starved_cycles for layer in result.layers)
    assert any(layer.waiting_cycles for layer in result.layers) is (head == "ports")
    with pytest.raises(UsageError, match=r"9 frames are too few .*; give --frames 10 or more"):
        bench_device(built.path, "sim", frames=9)


@pytest.mark.verilator
def test_results_after_a_replay_are_right(built):
    fixed = BuildFolder.open(built.path).fixed
    codes = {"image": quantize_inputs(fixed, built.inputs)["image"][:3]}
    expected = run_fixed(fixed, codes)["scores"]
    with open_device(built.path, "sim") as device:
        np.testing.assert_array_equal(device.run_codes(codes)["scores"], expected)
        assert device.replay(1000).frames == 1000 % 256
        np.testing.assert_array_equal(device.run_codes(codes)["scores"], expected)
        with pytest.raises(ValueError, match="frames must be 2 to 65535, not 1"):
            device.replay(1)


def test_nothing_is_recorded_of_a_host(cli, tmp_path, built):
    result = cli("record", built.path, "--port", "sim", "--steps", 5, "-o", tmp_path / "y.npz")
    assert result.status == 2
    assert "comes from the host, so no result comes of itself; build it with" in result.err
    assert not (tmp_path / "y.npz").exists()
