"""OmniVision OV7670: 320 x 240 or 160 x 120 pixels of two bytes, YUV422 or RGB565.

Registers are those of its data sheet and its implementation guide (OV7670/OV7171 CMOS VGA
CameraChip). Values of formats, colours and the reserved register are those of Linux's
``drivers/media/i2c/ov7670.c``, but for all levels (COM15) in both formats. Windows and scaling are
those of the guide, and of Adafruit's OV7670 driver. COM10 follows from the data sheet.
"""

from nnef_hw.boards.interfaces.cameras.camera import PAUSE, Camera, Mode, Write

__all__ = ["OV7670"]

# In every size a picture takes 510 lines of 784 pixels at the sensor's rate, two clocks each.
_LINE, _LINES = 2 * 784, 510


def _mode(rows: int, columns: int, power: int) -> Mode:
    writes: tuple[Write, ...] = (
        (0x0C, 0x04),  # COM3: scaling
        (0x3E, 0x18 | power),  # COM14: pixel clock, divided
        (0x72, 0x11 * power), (0x73, 0xF0 | power),  # downsampling, and its clock
        # window
        (0x17, 0x16), (0x18, 0x04), (0x32, 0x24 if power == 1 else 0xA4), (0x19, 0x02),
        (0x1A, 0x7A), (0x03, 0x0A),
    )
    factor = 1 << power
    return Mode(rows, columns, _LINE * factor, _LINES // factor, factor, writes)


OV7670 = Camera(
    name="ov7670",
    title="OV7670",
    address=0x21,
    register_bytes=1,
    lines=(8,),
    pixels={
        # COM7, COM15 (all levels), matrix of colours
        "yuv422": (
            (0x12, 0x00), (0x40, 0xC0), (0x4F, 0x80), (0x50, 0x80), (0x51, 0x00), (0x52, 0x22),
            (0x53, 0x5E), (0x54, 0x80), (0x58, 0x9E),
        ),
        "rgb565": (
            (0x12, 0x04), (0x8C, 0x00), (0x40, 0xD0), (0x4F, 0xB3), (0x50, 0xB3), (0x51, 0x00),
            (0x52, 0x3D), (0x53, 0xA7), (0x54, 0xE4), (0x58, 0x9E),
        ),
    },
    pixel_bytes=2,
    modes=(_mode(120, 160, 2), _mode(240, 320, 1)),
    # a reset; TSLB and COM13: Y first, then U; gamma and saturation by itself
    begin=((0x12, 0x80), PAUSE, (0x3A, 0x04), (0x3D, 0xC0)),
    # COM10: pixel clock in lines alone; a reserved register that colours need; CLKRC: no divider
    end=((0x15, 0x20), (0xB0, 0x84), (0x11, 0x40)),
    by_lines={8: ()},
    clock_hz=(10e6, 24e6),
    divider=1,
    vsync_in_frame=False,
)
