"""The driver for AXI DMA without hardware: what it asks of its channels, and what it refuses."""

import json

import numpy as np
import pytest

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.errors import UsageError
from nnef_hw.host.axi_dma import DmaAccelerator, DmaError
from nnef_hw.registers.accelerator import ID


def tensor(name, shape, image, lanes=1, bits=8, signed=False):
    height, width, channels = image
    return {
        "name": name, "shape": shape, "image": image, "lanes": lanes,
        "beats": height * width * -(-channels // lanes),
        "qtype": QType(bits=bits, signed=signed, scale=0.5).to_json(),
    }  # fmt: skip


@pytest.fixture
def build(tmp_path):
    """Return a function that writes a build of a network that gives what it takes, negated."""

    def make(batch=1):
        manifest = {
            "format": 1, "model": "m", "board": "none", "clock_mhz": 60.0,
            "cycles_per_inference": 8, "link": {"kind": "none"}, "files": {"ip": "ip"},
            "inputs": [tensor("x", [1, 2, 1, 3], [1, 3, 2], lanes=2)],
            "outputs": [tensor("y", [1, 2, 1, 3], [1, 3, 2], lanes=2, bits=9, signed=True)],
            **({"batch": batch} if batch > 1 else {}),
        }  # fmt: skip
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
        return tmp_path

    return make


class Negating:
    """A network that negates codes, with a DMA on both sides; it gives results in batches."""

    def __init__(self, batch=1, is_dead=False):
        self.batch, self.is_dead, self.frames, self.wanted = batch, is_dead, [], None
        self.ready, self.seen = [], []
        self.send, self.receive = Sending(self), Receiving(self)
        self.words = {}

    def step(self):
        """Give a frame to the buffer that waits for one."""
        if len(self.frames) >= self.batch:
            self.ready += [-frame for frame in self.frames[: self.batch]]
            del self.frames[: self.batch]
        if self.wanted is not None and self.ready:
            self.wanted[:] = self.ready.pop(0)
            self.wanted = None

    def read(self, offset):
        return self.words[offset]

    def write(self, offset, value):
        self.words[offset] = value


class Sending:
    def __init__(self, network):
        self.network, self.waited = network, True

    @property
    def idle(self):
        self.network.step()
        # a frame enters when there is room for it
        return len(self.network.frames) < max(2, self.network.batch)

    def transfer(self, array):
        assert self.waited, "a transfer before the other one was waited for"
        self.waited = False
        self.network.seen.append(array.copy())
        if not self.network.is_dead:
            self.network.frames.append(array.astype(np.int16))

    def wait(self):
        self.waited = True


class Receiving:
    def __init__(self, network):
        self.network, self.waited = network, True

    @property
    def idle(self):
        self.network.step()
        return self.network.wanted is None

    def transfer(self, array):
        assert self.waited, "a transfer before the other one was waited for"
        self.waited = False
        self.network.wanted = array

    def wait(self):
        self.waited = True


def device(folder, network, **more):
    return DmaAccelerator(folder, [network.send], [network.receive], np.zeros, **more)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("count", [1, 5])
def test_every_frame_comes_back(batch, count, build, rng):
    network = Negating(batch)
    codes = rng.integers(0, 256, (count, 2, 1, 3))
    found = device(build(batch), network).run_codes({"x": codes})
    np.testing.assert_array_equal(found["y"], -codes)
    assert len(network.seen) == -(-count // batch) * batch
    # channels of a pixel are a beat
    assert network.seen[0].dtype == np.uint8
    np.testing.assert_array_equal(network.seen[0], codes[0, :, 0].T)


def test_real_numbers_are_quantized(build):
    x = np.arange(6.0).reshape(1, 2, 1, 3)
    np.testing.assert_array_equal(device(build(), Negating()).run({"x": x})["y"], -x)


def test_silence_is_an_error_with_numbers(build):
    slow = device(build(), Negating(is_dead=True), stall=0.05)
    with pytest.raises(DmaError, match=r"no frame passes: 4 of 4 went in, 0 came out"):
        slow.run_codes({"x": np.zeros((4, 2, 1, 3), int)})


def test_registers_tell_another_build(build):
    network = Negating()
    folder = build()
    network.words = {0: 5, 4: 0}
    with pytest.raises(DmaError, match=f"0x00000005 stands where an accelerator has {ID:#010x}"):
        device(folder, network, registers=network)
    network.words[0] = ID
    with pytest.raises(DmaError, match="the FPGA has build 00000000, not "):
        device(folder, network, registers=network)
    plain = device(folder, network)
    network.words[4] = int.from_bytes(plain.manifest.hash[:4], "little")
    device(folder, network, registers=network).restart()
    assert network.words[8] == 3
    with pytest.raises(UsageError, match="made without registers"):
        plain.restart()


def test_what_is_missing_is_named(build):
    network = Negating()
    with pytest.raises(UsageError, match=r"the network has 1 inputs \(x\), not 0"):
        DmaAccelerator(build(), [], [network.receive], np.zeros)
    for codes in ({}, {"x": np.zeros((0, 2, 1, 3), int)}):
        with pytest.raises(UsageError, match="the network takes x: as many frames of each"):
            device(build(), network).run_codes(codes)
