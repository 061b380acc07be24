"""Parts: every component of ``rtl/``, described without Amaranth.

A part holds a component's parameters, and says what follows from them: what it computes, its
widths, cycles, memories and multipliers, what it is made of. The component takes its part and reads
all of that there. A component in ``rtl/ROOM/NAME.py`` has its part in ``parts/ROOM/NAME.py``.
"""

from nnef_hw.parts.arrays.array import SystolicArray
from nnef_hw.parts.arrays.contraction import ContractionArray
from nnef_hw.parts.arrays.depthwise import DepthwiseArray
from nnef_hw.parts.arrays.fast_array import FastArray, fast_offsets
from nnef_hw.parts.arrays.matrix import MatrixProduct
from nnef_hw.parts.arrays.packed_array import PackedArray
from nnef_hw.parts.arrays.requantizer import AverageRequantizer, Requantizer, TfliteRequantizer
from nnef_hw.parts.arrays.weight_writer import RowWriter, WeightWriter
from nnef_hw.parts.arrays.weights import WeightMemory, WeightRom
from nnef_hw.parts.audio.log_mel import LogMel
from nnef_hw.parts.audio.micro_frontend import MicroFrontend
from nnef_hw.parts.base.part import Part, Pipe, WindowPart
from nnef_hw.parts.functions.argmax import Argmax
from nnef_hw.parts.functions.causal_mask import CausalMask
from nnef_hw.parts.functions.corrected_table import CorrectedTable
from nnef_hw.parts.functions.eltwise import EltwiseExtremum, EltwiseProduct, EltwiseSum
from nnef_hw.parts.functions.integer_normalize import IntegerNormalize
from nnef_hw.parts.functions.interpolated_table import InterpolatedTable
from nnef_hw.parts.functions.lookup import Lookup
from nnef_hw.parts.functions.normalize import Normalize
from nnef_hw.parts.functions.pipelined_softmax import PipelinedSoftmax
from nnef_hw.parts.functions.quotient import Quotient
from nnef_hw.parts.functions.shared_normalize import SharedNormalize
from nnef_hw.parts.functions.softmax import Softmax
from nnef_hw.parts.functions.table import Table
from nnef_hw.parts.functions.tablesum import TableSum
from nnef_hw.parts.functions.tflite_softmax import TfliteSoftmax
from nnef_hw.parts.images.depthtospace import DepthToSpace
from nnef_hw.parts.images.interpolate import Interpolate
from nnef_hw.parts.images.pad import Pad
from nnef_hw.parts.images.pool import MaxPool, SumPool
from nnef_hw.parts.images.runningpool import RunningMax, RunningSum
from nnef_hw.parts.images.transpose import Transpose
from nnef_hw.parts.images.upsample import Upsample
from nnef_hw.parts.readers.flash_reader import FlashReader
from nnef_hw.parts.readers.flash_words import FlashWords
from nnef_hw.parts.readers.row_reader import RowReader
from nnef_hw.parts.readers.sdram_reader import SdramReader, SdramWords
from nnef_hw.parts.readers.split_reader import SplitReader
from nnef_hw.parts.streams.concat import Concat, Split
from nnef_hw.parts.streams.constant import Constant
from nnef_hw.parts.streams.delay import Delay
from nnef_hw.parts.streams.fifo import BlockFifo
from nnef_hw.parts.streams.lanes import Lanes
from nnef_hw.parts.streams.pipeline import Pipeline
from nnef_hw.parts.streams.state import State
from nnef_hw.parts.streams.stream import CutFifo, Fifo, Skid, SumHop, SumQueue
from nnef_hw.parts.streams.width import Pack
from nnef_hw.parts.windows.banked import BankedLineBuffer
from nnef_hw.parts.windows.linebuffer import LineBuffer
from nnef_hw.parts.windows.parallel import ParallelLineBuffer

__all__ = [
    "Argmax",
    "AverageRequantizer",
    "BankedLineBuffer",
    "BlockFifo",
    "CausalMask",
    "Concat",
    "Constant",
    "ContractionArray",
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
    "IntegerNormalize",
    "Interpolate",
    "InterpolatedTable",
    "Lanes",
    "LineBuffer",
    "LogMel",
    "Lookup",
    "MatrixProduct",
    "MaxPool",
    "MicroFrontend",
    "Normalize",
    "Pack",
    "PackedArray",
    "Pad",
    "ParallelLineBuffer",
    "Part",
    "Pipe",
    "Pipeline",
    "PipelinedSoftmax",
    "Quotient",
    "Requantizer",
    "RowReader",
    "RowWriter",
    "RunningMax",
    "RunningSum",
    "SdramReader",
    "SdramWords",
    "SharedNormalize",
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
    "WeightMemory",
    "WeightRom",
    "WeightWriter",
    "WindowPart",
    "fast_offsets",
]
