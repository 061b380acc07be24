"""Himax HM01B0: grey, 324 x 244 or half of that, a byte or two halves of one per pixel.

Registers are those of its data sheet (HM01B0-MNA). Where a value comes from stands beside it:
Z, Zephyr's ``drivers/video/hm01b0.c``; O, OpenMV's ``drivers/sensors/hm01b0.c``. Both have the same
analog settings, sizes, lines and clock divider, from the maker. Bits that say how the port works
(register 0x3060) follow from the data sheet.
"""

from nnef_hw.boards.interfaces.cameras.camera import PAUSE, Camera, Mode, Write

__all__ = ["HM01B0"]

_LINE = 0x178


def _mode(rows: int, columns: int, lines: int, *, halved: bool) -> Mode:
    readout = 0x03 if halved else 0x01
    writes: tuple[Write, ...] = (
        (0x3010, 0x01),  # window of 324 x 244
        (0x0383, readout), (0x0387, readout),  # every pixel, or pairs of columns and rows
        (0x0390, 0x03 if halved else 0x00),  # their sums
        (0x0340, lines >> 8), (0x0341, lines & 0xFF), (0x0342, _LINE >> 8), (0x0343, _LINE & 0xFF),
        (0x2105, lines - 2 >> 8), (0x2106, lines - 2 & 0xFF),  # no exposure is longer: Z, O
    )
    return Mode(rows, columns, _LINE, lines, 1, writes)


HM01B0 = Camera(
    name="hm01b0",
    title="HM01B0",
    address=0x24,
    register_bytes=2,
    lines=(8, 4),
    pixels={"grey": ()},
    pixel_bytes=1,
    modes=(_mode(122, 162, 0x84, halved=True), _mode(244, 324, 0x104, halved=False)),
    begin=(
        (0x0103, 0x00), PAUSE,  # reset
        (0x0100, 0x00),  # stand by
        # analog settings: Z, O
        (0x3044, 0x0A), (0x3045, 0x00), (0x3047, 0x0A), (0x3050, 0xC0), (0x3051, 0x42),
        (0x3052, 0x50), (0x3053, 0x00), (0x3054, 0x03), (0x3055, 0xF7), (0x3056, 0xF8),
        (0x3057, 0x29), (0x3058, 0x1F), (0x3064, 0x00), (0x3065, 0x04),
        (0x3067, 0x00),  # not its own oscillator: Z, O
        (0x1000, 0x43), (0x1006, 0x01), (0x1007, 0x08),  # black level: Z, O
        (0x2000, 0x07), (0x2100, 0x01),  # brightness, for automatic exposure: Z, O
    ),
    # the clock that it gets, over 2, upper half first; pixel clock in lines alone
    end=((0x3060, 0x3A), (0x0104, 0x01), (0x0100, 0x01)),
    by_lines={8: ((0x3059, 0x02),), 4: ((0x3059, 0x42),)},
    clock_hz=(3e6, 12e6),
    divider=2,
    vsync_in_frame=True,
)
