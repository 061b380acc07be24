"""Parameters of which no component can be made."""

import re
from dataclasses import replace

import pytest

from nnef_hw import parts
from nnef_hw.hardware.geometry.blockram import BlockRam
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.hardware.memories.flash import QUAD_IO, QUAD_IO_DDR, W25Q64JV
from nnef_hw.hardware.memories.sdram import SDRAM_256_MBIT

RAM = BlockRam("tiny", ((16, 16), (32, 8), (64, 4), (128, 2)))
CODES = {"bits": 8, "signed": False}
LANE = {**CODES, "lanes": 1, "pad_code": 0, "ram": RAM}
ARRAY = {
    "x_bits": 8, "x_signed": False, "w_bits": 8, "acc_bits": 22, "in_dsp": 0,
    "weights": parts.WeightRom(ram=RAM), "weight_delay": 0,
}  # fmt: skip

TABLE = parts.InterpolatedTable(
    in_bits=12, in_signed=False, out_bits=8, out_signed=False, rise_bits=4, ram=RAM
)
CONCAT = parts.Concat(runs=(2, 1), **CODES)
SPLIT = parts.Split(runs=(2, 1), turns=2, kept=(True, False), **CODES)
LANES = parts.Lanes(part=parts.Argmax(channels=3, **CODES), lanes=2)
PACK = parts.Pack(channels=6, lanes=4, in_lanes=2, **CODES)
IMAGE = {"height": 3, "width": 4, "channels": 2, "factors": (2, 2), "ram": RAM, **CODES}
UPSAMPLE = parts.Upsample(depth=8, **IMAGE)
DEPTH_TO_SPACE = parts.DepthToSpace(depth=32, **IMAGE)
SOFTMAX = parts.PipelinedSoftmax(channels=6, stages=2, lanes=3, ram=RAM, **CODES)
MASK = parts.CausalMask(channels=6, pixels=2, place_bits=3, lanes=3, **CODES)
TRANSPOSE = parts.Transpose(extents=(2, 3, 4), order=(0, 2, 1), ram=RAM, **CODES)
FIFO = parts.BlockFifo(depth=4, frame=7, ram=RAM, **CODES)
RUNNING = parts.RunningMax(
    window=Window(4, 4, 4, (2, 2), (2, 2), passes=4, by_channel=True), ram=RAM, **CODES
)
LINE_BUFFER = parts.LineBuffer(window=Window(4, 4, 1, (3, 3)), depth=16, **LANE)
BANKED = parts.BankedLineBuffer(window=Window(8, 8, 1, (3, 3)), lines=4, **LANE)
PARALLEL = parts.ParallelLineBuffer(window=Window(3, 3, 1), **LANE)
SYSTOLIC = parts.SystolicArray(
    channels=4, words=1, lanes=1, rows=1, group_rows=1, kept_passes=1, **ARRAY
)
DEPTHWISE = parts.DepthwiseArray(
    channels=6, positions=9, lanes=3, taps=1, kept_passes=2, lut_ram=False, **ARRAY
)
FOLDING = {"channels": 1, "acc_bits": 20, "digit_bits": 2, "stages": 1, **CODES}
REQUANTIZER = parts.Requantizer(factor_bits=16, **FOLDING)
TFLITE = parts.TfliteRequantizer(factor_bits=31, **FOLDING)
NORMALIZE = parts.Normalize(
    channels=6, bits=8, signed=True, out_bits=8, out_signed=True, centered=True, offset_bits=18,
    scales=1, offsets=1, ram=RAM, epsilon_bits=4, fraction=10, spacing=1,
)  # fmt: skip
FLASH_READER = parts.FlashReader(chips=(W25Q64JV,), read=QUAD_IO, clock_mhz=36.0, base=0, words=8)
SDRAM_READER = parts.SdramReader(chip=SDRAM_256_MBIT, clock_mhz=90.0, words=64, ram=RAM)

REFUSED = {
    "InterpolatedTable in_bits must be over 8, not 8": (TABLE, {"in_bits": 8}),
    "Concat needs at least 2 runs of beats, not ()": (CONCAT, {"runs": ()}),
    "Concat needs at least 2 runs of beats, not (3,)": (CONCAT, {"runs": (3,)}),
    "Concat needs at least 2 runs of beats, not (2, 0)": (CONCAT, {"runs": (2, 0)}),
    "Split cannot give runs (2, 0) of which (True, False) are kept": (SPLIT, {"runs": (2, 0)}),
    "Split cannot give runs (2, 1) of which (False, False) are kept": (
        SPLIT, {"kept": (False, False)},
    ),
    "Split cannot give runs (2, 1) of which (True,) are kept": (SPLIT, {"kept": (True,)}),
    "Lanes lanes must be at least 2": (LANES, {"lanes": 1}),
    "Lanes cannot be copies of Concat": (LANES, {"part": CONCAT}),
    "PipelinedSoftmax channels 6 must be a multiple of lanes 4": (SOFTMAX, {"lanes": 4}),
    "PipelinedSoftmax channels 6 must be a multiple of lanes 0": (SOFTMAX, {"lanes": 0}),
    "PipelinedSoftmax that layers share has a power of two of lanes, not 3": (
        SOFTMAX, {"is_shared": True},
    ),
    "CausalMask channels 6 must be a multiple of lanes 4": (MASK, {"lanes": 4}),
    "CausalMask channels 6 must be a multiple of lanes 0": (MASK, {"lanes": 0}),
    "Pack channels 6 and lanes 4 must be multiples of in_lanes 4": (PACK, {"in_lanes": 4}),
    "Pack channels 6 and lanes 4 must be multiples of in_lanes 0": (PACK, {"in_lanes": 0}),
    "Upsample depth must be at least 8, not 7": (UPSAMPLE, {"depth": 7}),
    "Upsample factors must be positive, not (2, 0)": (UPSAMPLE, {"factors": (2, 0)}),
    "DepthToSpace depth must be a power of two, at least 32, not 16": (
        DEPTH_TO_SPACE, {"depth": 16},
    ),
    "DepthToSpace depth must be a power of two, at least 32, not 48": (
        DEPTH_TO_SPACE, {"depth": 48},
    ),
    "DepthToSpace factors must be positive, not (2, 0)": (DEPTH_TO_SPACE, {"factors": (2, 0)}),
    "Transpose order must be one of the axes 0..2, not (0, 1, 1)": (
        TRANSPOSE, {"order": (0, 1, 1)},
    ),
    "BlockFifo depth must be at least 4, not 3": (FIFO, {"depth": 3}),
    "running pooling needs windows that tile their image": (
        RUNNING, {"window": Window(4, 4, 4, (2, 2), passes=4, by_channel=True)},
    ),
    "running pooling of 2 channels would read a result before": (
        RUNNING, {"window": Window(4, 12, 2, (2, 2), (2, 2), passes=2, by_channel=True)},
    ),
    "LineBuffer depth must be a power of two, not 1": (LINE_BUFFER, {"depth": 1}),
    "LineBuffer depth must be a power of two, not 24": (LINE_BUFFER, {"depth": 24}),
    "LineBuffer depth must be at least 11, not 8": (LINE_BUFFER, {"depth": 8}),
    "BankedLineBuffer needs a first window with a pixel": (
        BANKED, {"window": Window(4, 4, 1, (2, 2), padding=((2, 0), (0, 0)))},
    ),
    "BankedLineBuffer lines must be a power of two, not 6": (BANKED, {"lines": 6}),
    "BankedLineBuffer lines must be at least 3, not 2": (BANKED, {"lines": 2}),
    "ParallelLineBuffer needs all channels of a pixel in one beat": (
        PARALLEL, {"window": Window(3, 3, 2)},
    ),
    "ParallelLineBuffer needs all channels of a pixel in one": (
        PARALLEL, {"window": Window(3, 3, 1, by_channel=True)},
    ),
    "ParallelLineBuffer has no dilation, not (1, 2)": (
        PARALLEL, {"window": Window(3, 3, 1, (1, 2), dilation=(1, 2))},
    ),
    "ParallelLineBuffer needs two columns and a first window with a pixel": (
        PARALLEL, {"window": Window(3, 1, 1)},
    ),
    "ParallelLineBuffer needs two columns and a first window with a": (
        PARALLEL, {"window": Window(3, 3, 1, (1, 1), padding=((1, 0), (0, 0)))},
    ),
    "SystolicArray needs group_rows <= rows <= 4 channels, not 1 and 5": (SYSTOLIC, {"rows": 5}),
    "SystolicArray needs group_rows <= rows <= 4 channels, not 3 and 2": (
        SYSTOLIC, {"rows": 2, "group_rows": 3},
    ),
    "SystolicArray needs group_rows <= rows <= 4 channels, not 0 and 1": (
        SYSTOLIC, {"group_rows": 0},
    ),
    "SystolicArray kept_passes must be 1 or 2, not 3": (SYSTOLIC, {"kept_passes": 3}),
    "DepthwiseArray lanes must be in 1..6, not 7": (DEPTHWISE, {"lanes": 7}),
    "DepthwiseArray lanes must be in 1..6, not 0": (DEPTHWISE, {"lanes": 0}),
    "DepthwiseArray taps must be in 1..9, not 10": (DEPTHWISE, {"taps": 10}),
    "DepthwiseArray taps must be in 1..9, not 0": (DEPTHWISE, {"taps": 0}),
    "DepthwiseArray kept_passes must be at least 1, not 0": (DEPTHWISE, {"kept_passes": 0}),
    "Requantizer digit_bits must be in 1..16, not 0": (REQUANTIZER, {"digit_bits": 0}),
    "Requantizer digit_bits must be in 1..16, not 17": (REQUANTIZER, {"digit_bits": 17}),
    "Requantizer stages must be in 1..8, not 0": (REQUANTIZER, {"stages": 0}),
    "Requantizer stages must be in 1..8, not 9": (REQUANTIZER, {"stages": 9}),
    "TfliteRequantizer stages must be in 1..16, not 17": (TFLITE, {"stages": 17}),
    "Normalize of 6 channels has no beats of 4": (NORMALIZE, {"lanes": 4}),
    "Normalize has no 3 digits at spacing 1": (NORMALIZE, {"digits": 3}),
    "Normalize has no 2 digits at spacing 8": (NORMALIZE, {"digits": 2, "spacing": 8}),
    "FlashReader needs a chip": (FLASH_READER, {"chips": ()}),
    "W25Q64JV has no 'DTR Fast Read Quad I/O'": (FLASH_READER, {"read": QUAD_IO_DDR}),
    "'Fast Read Quad I/O' takes at most 104 MHz, not 105": (FLASH_READER, {"clock_mhz": 105.0}),
    "not 0 words at 0x0": (FLASH_READER, {"words": 0}),
    "not 8 words at 0xfffff2": (FLASH_READER, {"base": 0xFFFFF2}),
    "SdramReader needs 1 to 16777216 words, not 0": (SDRAM_READER, {"words": 0}),
    "SdramReader needs 1 to 16777216 words, not 16777217": (SDRAM_READER, {"words": 16777217}),
    "takes at most 133 MHz, not 134": (SDRAM_READER, {"clock_mhz": 134.0}),
    "SdramReader: 2 MHz is too slow for refreshes": (SDRAM_READER, {"clock_mhz": 2.0}),
}  # fmt: skip


@pytest.mark.parametrize(("message", "case"), REFUSED.items())
def test_refuses(message, case):
    part, change = case
    with pytest.raises(ValueError, match=re.escape(message)):
        replace(part, **change)
