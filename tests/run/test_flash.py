import hashlib
import json

import pytest

from nnef_hw.boards import BOARDS, find_board
from nnef_hw.errors import ToolError, UsageError
from nnef_hw.place.toolchain import toolchain_of
from nnef_hw.run.flash import flash, plan_flashing


@pytest.fixture
def make_flashable(tmp_path):
    """Return a function that makes a folder with what flashing reads of a build."""

    def make(board, image=None, is_ip=False):
        manifest = {
            "format": 1, "model": "net", "board": board, "clock_mhz": 24.0, "inputs": [],
            "cycles_per_inference": 1, "outputs": [],
            "link": {"kind": "uart", "baud": 1_000_000}, "files": {"board": "board"},
        }  # fmt: skip
        if is_ip:
            manifest |= {"link": {"kind": "axi4-stream"}, "files": {"ip": "ip"}}
            (tmp_path / "manifest.json").write_text(json.dumps(manifest))
            return tmp_path
        (tmp_path / "board").mkdir()
        if image is not None:
            (tmp_path / "board" / "weights.bin").write_bytes(image)
            manifest["memory"] = {
                "kind": "SPI flash", "file": "board/weights.bin", "address": 0x100000,
                "bytes": len(image), "sha256": hashlib.sha256(image).hexdigest(),
                "over_link": False, "answer": "",
            }  # fmt: skip
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
        suffix = toolchain_of(find_board(board).device.family).bitstream_suffix
        (tmp_path / "board" / f"board_top.{suffix}").write_bytes(b"bits")
        return tmp_path

    return make


@pytest.fixture
def loader(tmp_path, monkeypatch):
    """Return a function that installs a program which says something and ends with a status."""

    def install(text, status):
        program = tmp_path / "loader"
        program.write_text(
            f'#!/bin/sh\necho "$@" > {tmp_path}/seen\necho "{text}"\nexit {status}\n'
        )
        program.chmod(0o755)
        monkeypatch.setenv("NNEF_HW_OPENFPGALOADER", str(program))
        return tmp_path / "seen"

    return install


@pytest.mark.parametrize("board", [b for b in BOARDS if b.flash], ids=lambda board: board.name)
def test_bitstream_goes_to_the_board(board, make_flashable, loader):
    build = make_flashable(board.name)
    seen = loader("Done", 0)
    flashing = plan_flashing(build)
    flash(flashing)
    assert seen.read_text().split() == [*board.flash, str(flashing.bitstream)]
    [command] = flashing.commands
    assert command == " ".join(["openFPGALoader", *board.flash, str(flashing.bitstream)])


@pytest.mark.parametrize(
    ("board", "option"), [("tang_nano_9k", "--external-flash"), ("tang_nano_20k", "-f")]
)
def test_weights_go_to_the_flash_that_the_design_reads(board, option, make_flashable):
    """The bitstream of the 9K is in another one."""
    build = make_flashable(board, b"weights")
    image, bitstream = plan_flashing(build).runs
    *target, last = find_board(board).flash
    assert last == "-f"
    path = str(build / "board" / "weights.bin")
    assert image == (*target, option, "--file-type", "raw", "-o", "0x100000", path)
    assert bitstream[:-1] == (*target, "-f")


def test_volatile_leaves_the_flash_alone(make_flashable):
    assert "-f" not in plan_flashing(make_flashable("ulx3s_85f"), volatile=True).arguments


def test_board_that_has_no_other_memory_is_not_volatile(make_flashable):
    with pytest.raises(UsageError, match="'fomu_pvt' always writes its flash; omit --volatile"):
        plan_flashing(make_flashable("fomu_pvt"), volatile=True)


@pytest.mark.parametrize(
    ("board", "match"),
    [("icesugar", "copy .*board_top.bin onto the drive iCELink"), ("tinyfpga_bx", "tinyprog -p ")],
)
def test_board_with_a_way_of_its_own(board, match, make_flashable):
    with pytest.raises(UsageError, match=match):
        plan_flashing(make_flashable(board))


def test_build_for_another_board_is_not_flashed(make_flashable):
    build = make_flashable("icebreaker")
    assert plan_flashing(build, "ice40").board.name == "icebreaker"
    with pytest.raises(
        UsageError, match="is a build for board 'icebreaker', not 'icesugar'; build"
    ):
        plan_flashing(build, "icesugar")


def test_plain_ip_is_not_flashed(make_flashable):
    build = make_flashable("none", is_ip=True)
    with pytest.raises(UsageError, match="is plain IP for a design of your own: it has no bitstr"):
        plan_flashing(build)


def test_build_without_bitstream(make_flashable):
    build = make_flashable("icebreaker")
    (build / "board" / "board_top.bin").unlink()
    with pytest.raises(
        UsageError, match=r"has no bitstream board_top\.bin; run nnef-hw build with"
    ):
        plan_flashing(build)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("unable to open ftdi device: -3 (device not found)", "no board was found; plug it in"),
        ("No DFU compatible device found", "no board waits .* hold the board's button"),
        (
            "unable to open ftdi device: -4 (usb_open() failed): LIBUSB_ERROR_ACCESS",
            r"may not be opened by this user; put the line .*idVendor\}==",
        ),
        (
            "loader: error while loading shared libraries: libftdi1.so.2: cannot open it",
            r"the system lacks libftdi1\.so\.2; install them \(.*apt install libftdi1-2\)",
        ),
        ("Verification FAIL", "openFPGALoader failed:\nverification fail; try openFPGALoader -b"),
    ],
    ids=["no_device", "no_dfu", "permission", "library", "other"],
)
def test_failures_are_translated(text, match, make_flashable, loader):
    flashing = plan_flashing(make_flashable("icebreaker"))
    loader(text, 1)
    with pytest.raises(ToolError, match=match):
        flash(flashing)
