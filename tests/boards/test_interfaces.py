# amaranth: UnusedElaboratable=no
"""Links as objects: those that there are, and one that is made up here."""

import inspect
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from parallel_link import Parallel

from nnef_hw.boards import BOARDS, Pins, find_board, interfaces
from nnef_hw.boards.hardware.phy import pin_members
from nnef_hw.boards.hardware.pins import board_pins, plan_pins
from nnef_hw.boards.interfaces import (
    LINKS,
    PLAIN_STREAMS,
    Direction,
    HostLink,
    PinUse,
    Spi,
    Uart,
    find_link,
    link_of,
)
from nnef_hw.errors import TargetError, UsageError
from nnef_hw.host.manifest import read_manifest
from nnef_hw.place.constraints import board_constraints
from nnef_hw.run import open_device

ROOT = Path(__file__).parents[2]

each_link = pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
PARALLEL_PINS = {
    "host_data": tuple(f"@{n}" for n in (4, 2, 47, 45, 3, 48, 46, 44)),
    "board_data": tuple(f"@{n}" for n in (43, 38, 34, 31, 42, 36, 32, 28)),
    "host_strobe": "@27",
    "board_strobe": "@25",
}


class TestLinks:
    """What every link keeps."""

    @each_link
    def test_the_manifest_has_all_of_it(self, link):
        assert link_of(link.to_json()) == link
        assert find_link(link.name) == link

    def test_options_are_in_the_manifest(self):
        assert Uart(9600).to_json() == {
            "kind": "uart", "baud": 9600, "protocol": "docs/protocol.md",
        }  # fmt: skip
        assert link_of({**Uart(9600).to_json(), "counted_layers": 3}) == Uart(9600)
        assert link_of({"kind": "axi4-stream"}) == PLAIN_STREAMS

    @each_link
    def test_hardware_has_the_pins_that_the_link_says(self, link):
        phy = link.hardware_class()(**link.parameters(24_000_000))
        assert pin_members(link, phy).keys() == link.pins.keys()

    def test_pins_that_the_link_does_not_say_are_refused(self):
        class Forgetful(Uart):
            @property
            def pins(self):
                return {"rx": PinUse(Direction.INPUT), "tx": PinUse(Direction.INPUT)}

        phy = Uart.hardware_class()(24)
        with pytest.raises(ValueError, match=r"link uart says that its pins are .*, and its comp"):
            pin_members(Forgetful(), phy)

    def test_a_forgotten_answer_is_an_error_when_the_link_is_made(self):
        answers = HostLink.__abstractmethods__
        assert answers == {"pins", "check_clock", "parameters", "bytes_per_second", "far_end"}
        for answer in answers:
            body = {name: getattr(Spi, name) for name in answers - {answer}}
            with pytest.raises(TypeError, match=f"abstract method '?{answer}"):
                type("Forgetful", (HostLink,), {"name": "forgetful", **body})()

    def test_wrong_wishes_are_refused(self):
        with pytest.raises(UsageError, match="no link 'usb'; use --link uart or spi or mlperf"):
            find_link("usb")
        with pytest.raises(
            UsageError, match="--baud is for --link uart or mlperf or text_line; omit it"
        ):
            find_link("spi", baud=9600)
        with pytest.raises(UsageError, match="--baud must be positive, not 0"):
            find_link("uart", baud=0)
        with pytest.raises(UsageError, match="link 'usb', which is not known; build it with"):
            link_of({"kind": "usb"})

    def test_no_other_file_has_their_names(self):
        """None asks which link it is by its name; amaranth's resources are called alike."""
        names = "|".join([*(link.name for link in LINKS), PLAIN_STREAMS.name])
        own = {Path(inspect.getfile(type(link))).name for link in LINKS}
        own |= {"link.py", "tang_nano_20k_platform.py"}
        found = {
            path.name
            for folder in ("boards", "nnef_hw", "sim")
            for path in (ROOT / folder).rglob("*.py")
            if re.search(rf"""["'](?:{names})["']""", path.read_text())
        }
        assert found == own


class TestOtherLink:
    """A link of a user's own: its file, and a line in the list."""

    @pytest.fixture
    def listed(self, monkeypatch):
        monkeypatch.setattr(interfaces, "LINKS", (*LINKS, Parallel()))

    @pytest.fixture
    def board(self, cli, tmp_path, listed):
        """A file of a board with its pins."""
        cli("new", "par.py", "--like", "icebreaker")
        path = tmp_path / "par.py"
        path.write_text(path.read_text().replace("pins={", f"pins={{**{PARALLEL_PINS}, ", 1))
        return "./par.py"

    @pytest.mark.verilator
    @pytest.mark.system
    def test_it_is_built_and_simulated(self, board, cli, tiny, tmp_path):
        model, samples = tiny / "tiny.nnef.tgz", tiny / "samples.npz"
        result = cli(
            "build", model, "--board", board, "--link", "parallel", "--spacing", 24,
            "--calibrate", samples, "--frames", 3, "--no-bitstream", "--out", "out", "--json",
        )  # fmt: skip
        assert result.status == 0, result.err
        lines = (tmp_path / "out" / "board" / "board_top.pcf").read_text().splitlines()
        assert {"set_io host_data[7] 44", "set_io board_strobe 25", "set_io led 37"} < set(lines)
        assert not any(" rx " in line or " tx " in line for line in lines)
        manifest = read_manifest(tmp_path / "out")
        assert link_of(manifest.link) == Parallel(24)
        assert result.json["link_inferences_per_second"] > 1000
        for on in (("fixed",), ("device", "--port", "sim")):
            result = cli("run", "out", "--on", *on, "--input", samples, "--output", f"{on[0]}.npz")
            assert (result.status, result.err) == (0, "")
        with np.load("fixed.npz") as fixed, np.load("device.npz") as device:
            assert device.files == fixed.files
            for name in fixed:
                np.testing.assert_array_equal(device[name], fixed[name])

    def test_its_errors(self, board, cli, tiny, tmp_path, listed):
        model = tiny / "tiny.nnef.tgz"
        wanted = ("build", model, "--link", "parallel", "--out", "out", "--board")
        result = cli(*wanted, "icebreaker")
        assert result.status == 2
        assert re.search(
            "board 'icebreaker' has no pins host_data, board_data, host_strobe, board_strobe, which"
            r" the link parallel needs; .* board file .*; free on its connectors: @28 @18$",
            result.err,
        )
        assert "is under 16 cycles" in cli(*wanted, board, "--spacing", 3).err
        result = cli(*wanted, board, "--baud", 9600)
        assert (
            "--baud is for --link uart or mlperf or text_line; omit it: the link parallel"
            in result.err
        )
        assert "--link {uart,spi,mlperf,text_line,parallel,none}" in cli("build", "--help").out


@pytest.mark.verilator
@pytest.mark.system
def test_spi_is_simulated_as_a_board(cli, tiny, tmp_path):
    """By the same host as behind a serial port."""
    model, samples = tiny / "tiny.nnef.tgz", tiny / "samples.npz"
    cli(
        "build", model, "--board", "icebreaker", "--link", "spi", "--calibrate", samples,
        "--frames", 3, "--no-bitstream", "--out", "out",
    )  # fmt: skip
    for on in (("fixed",), ("device", "--port", "sim")):
        result = cli("run", "out", "--on", *on, "--input", samples, "--output", f"{on[0]}.npz")
        assert (result.status, result.err) == (0, "")
    with np.load("fixed.npz") as fixed, np.load("device.npz") as device:
        for name in fixed:
            np.testing.assert_array_equal(device[name], fixed[name])
    with (
        pytest.raises(UsageError, match="the link 'spi', which is not a serial port; build it"),
        open_device("out", "/dev/ttyUSB0"),
    ):
        pass


class TestPins:
    """The open set of a board's pins."""

    @pytest.fixture
    def board(self):
        return find_board("icebreaker")

    def with_pins(self, board, **pins):
        return replace(board, pins={**board.pins, **pins})

    def test_pins_of_one_place_have_what_their_file_says(self, board):
        pins = Pins(("@4", "@2"), invert=True, attributes={"PULLUP": 1})
        board = self.with_pins(board, rx=pins)
        [rx, other] = plan_pins(board, (Wide("rx", Direction.INPUT),)).pins["rx"]
        assert (rx.site, rx.invert, rx.attributes) == ("4", True, {"PULLUP": 1})
        assert other.site == "2"
        assert "set_io -pullup yes rx[1] 2" in board_constraints(
            board, (Wide("rx", Direction.INPUT),)
        )

    def test_others_do_no_harm(self, board):
        assert board_constraints(self.with_pins(board, mic_sck="@3")) == board_constraints(board)

    def test_a_numbered_resource(self):
        board = find_board("ulx3s_12f")
        found = board_pins(board, (Wide("leds", Direction.OUTPUT),))
        assert [pin.site for name, pin in found.items() if name.startswith("leds")] == [
            "B2", "C2", "C1", "D2", "D1", "E2", "E1", "H3",
        ]  # fmt: skip
        # the status LED is one of them
        assert "led" not in found

    def test_the_status_led_stays_where_it_is_free(self):
        board = find_board("ulx3s_12f")
        board = replace(board, pins={**board.pins, "leds": ("led:1", "led:2")})
        assert board_pins(board, (Wide("leds", Direction.OUTPUT),))["led"].site == "B2"

    @pytest.mark.parametrize(
        ("pins", "match"),
        [
            ({"tx": "uart.rx"}, r"pin 'tx' \(uart.rx\) is no output, which link uart needs"),
            ({"rx": Pins(("@4",), Direction.OUTPUT)}, r"pin 'rx' \(@4\) is no input, which link"),
            ({"rx": "led:7"}, "its platform .* has no pin 'led:7'"),
        ],
        ids=["platform", "board", "number"],
    )
    def test_wrong_pins_are_refused(self, pins, match, board):
        with pytest.raises(TargetError, match=match):
            board_pins(self.with_pins(board, **pins))

    def test_too_few_are_refused(self, board):
        match = "board 'icebreaker' has 2 pins 'leds', and wide leds needs 3"
        with pytest.raises(TargetError, match=match):
            board_pins(board, (Wide("leds", Direction.OUTPUT, 3),))

    def test_two_users_of_one_pin_are_refused(self, board):
        with pytest.raises(TargetError, match="link uart and wide tx both need the pin 'tx'"):
            board_pins(board, (Uart(), Wide("tx", Direction.OUTPUT)))

    @pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
    def test_every_name_of_a_board_has_pins(self, board):
        directions = dict.fromkeys(("clk", "rx", "copi", "cs_n", "sck"), Direction.INPUT)
        for name in board.pins.keys() - {"clk", "led"}:
            wanted = directions.get(name, Direction.OUTPUT)
            assert plan_pins(board, (Wide(name, wanted),)).pins[name]


class Wide:
    """Needs pins of a name, as many as there are."""

    def __init__(self, name, direction, width=interfaces.ANY_NUMBER):
        self.title = f"wide {name}"
        self.pins = {name: PinUse(direction, width)}
