"""Parts: every component of ``rtl/``, described without Amaranth.

A part holds a component's parameters, and says what follows from them: its widths, cycles,
memories and multipliers, what it is made of. The component takes its part and reads all of that
there. The file of a component ``rtl/NAME.py`` is ``parts/NAME.py``.
"""

from nnef_hw.parts.argmax import Argmax
from nnef_hw.parts.array import SystolicArray
from nnef_hw.parts.banked import BankedLineBuffer
from nnef_hw.parts.concat import Concat, Split
from nnef_hw.parts.constant import Constant
from nnef_hw.parts.corrected_table import CorrectedTable
from nnef_hw.parts.delay import Delay
from nnef_hw.parts.depthtospace import DepthToSpace
from nnef_hw.parts.depthwise import DepthwiseArray
from nnef_hw.parts.eltwise import EltwiseExtremum, EltwiseProduct, EltwiseSum
from nnef_hw.parts.fast_array import FastArray, fast_offsets
from nnef_hw.parts.fifo import BlockFifo
from nnef_hw.parts.flash_reader import FlashReader
from nnef_hw.parts.flash_words import FlashWords
from nnef_hw.parts.interpolate import Interpolate
from nnef_hw.parts.interpolated_table import InterpolatedTable
from nnef_hw.parts.lanes import Lanes
from nnef_hw.parts.linebuffer import LineBuffer
from nnef_hw.parts.matrix import MatrixProduct
from nnef_hw.parts.pad import Pad
from nnef_hw.parts.parallel import ParallelLineBuffer
from nnef_hw.parts.part import Part, Pipe, WindowPart
from nnef_hw.parts.pipeline import Pipeline
from nnef_hw.parts.pipelined_softmax import PipelinedSoftmax
from nnef_hw.parts.pool import MaxPool, SumPool
from nnef_hw.parts.quotient import Quotient
from nnef_hw.parts.requantizer import AverageRequantizer, Requantizer, TfliteRequantizer
from nnef_hw.parts.runningpool import RunningMax, RunningSum
from nnef_hw.parts.sdram_reader import SdramReader, SdramWords
from nnef_hw.parts.softmax import Softmax
from nnef_hw.parts.split_reader import SplitReader
from nnef_hw.parts.state import State
from nnef_hw.parts.stream import CutFifo, Fifo, Skid, SumHop, SumQueue
from nnef_hw.parts.table import Table
from nnef_hw.parts.tablesum import TableSum
from nnef_hw.parts.tflite_softmax import TfliteSoftmax
from nnef_hw.parts.transpose import Transpose
from nnef_hw.parts.upsample import Upsample
from nnef_hw.parts.width import Pack

__all__ = [
    "Argmax",
    "AverageRequantizer",
    "BankedLineBuffer",
    "BlockFifo",
    "Concat",
    "Constant",
    "CorrectedTable",
    "CutFifo",
    "Delay",
    "DepthToSpace",
    "DepthwiseArray",
    "EltwiseExtremum",
    "EltwiseProduct",
    "EltwiseSum",
    "FastArray",
    "Fifo",
    "FlashReader",
    "FlashWords",
    "Interpolate",
    "InterpolatedTable",
    "Lanes",
    "LineBuffer",
    "MatrixProduct",
    "MaxPool",
    "Pack",
    "Pad",
    "ParallelLineBuffer",
    "Part",
    "Pipe",
    "Pipeline",
    "PipelinedSoftmax",
    "Quotient",
    "Requantizer",
    "RunningMax",
    "RunningSum",
    "SdramReader",
    "SdramWords",
    "Skid",
    "Softmax",
    "Split",
    "SplitReader",
    "State",
    "SumPool",
    "SumHop",
    "SumQueue",
    "SystolicArray",
    "Table",
    "TableSum",
    "TfliteRequantizer",
    "TfliteSoftmax",
    "Transpose",
    "Upsample",
    "WindowPart",
    "fast_offsets",
]
