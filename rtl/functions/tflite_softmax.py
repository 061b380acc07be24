"""Softmax over the channels of a pixel, in TensorFlow Lite's integers."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.parts.functions.tflite_softmax import DROPPED_BITS, FRACTION_BITS, PRODUCTS
from nnef_hw.rtl.functions.softmax import PixelSum, layer_ports
from nnef_hw.rtl.streams.stream import beat_layout

__all__ = ["TfliteSoftmax"]

RECIPROCAL_ESTIMATE = 1515870810, -1010580540
"""First estimate of a reciprocal: constant and slope, with two integer bits."""
ROUNDED_BITS = 9
"""Width of a probability, whose greatest value is 256, with one bit more to round at."""


class TfliteSoftmax(wiring.Component):
    """Softmax of the codes of a pixel, to signed 8-bit probabilities in 1/256.

    Golden model: :func:`nnef_hw.arithmetic.tflite.numerics.tflite_softmax_codes`.

    One serial multiplier does everything, a bit per cycle: the reciprocal of the sum of a pixel's
    exponentials, and every exponential times it. What depends on the magnitude of the sum takes as
    long for every sum.

    Parameters
    ----------
    table : list[int]
        :func:`nnef_hw.arithmetic.tflite.numerics.tflite_exp_table`, of several one behind the
        other; not needed if they are written.

    Members
    -------
    table_number, table_address, table_data, table_enable : In
        See :func:`.layer_ports`.
    i : In(stream.Signature(beat_layout))
    o : Out(stream.Signature(beat_layout))
    """

    unproved = "the solver finds no invariant in 150 s; tests simulate it under stalls"

    def __init__(self, part: parts.TfliteSoftmax, *, table=()):
        self.part = part
        self.table = table
        codes = beat_layout(bits=part.bits, signed=part.signed, lanes=1)
        super().__init__({
            "i": In(stream.Signature(codes)),
            "o": Out(stream.Signature(beat_layout(bits=8, signed=True, lanes=1))),
            **layer_ports(part),
        })

    def elaborate(self, platform):
        m = Module()
        shift_steps = self.part.shift_steps
        # An exponential without its low bits, the highest of which rounds.
        pixel = PixelSum(
            m, self.part, self.table, self,
            summand=lambda exponential: (exponential[DROPPED_BITS:]
                                         + exponential[DROPPED_BITS - 1]),
        )
        total = pixel.total
        shifts = Signal(range(shift_steps + 1))
        step = Signal(range(FRACTION_BITS + 1))
        phase = Signal(range(PRODUCTS + 2))

        multiplicand = Signal(signed(FRACTION_BITS + 2), reset_less=True)
        multiplier = Signal(FRACTION_BITS + 1, reset_less=True)
        product = Signal(signed(FRACTION_BITS + 2), reset_less=True)
        partial = Signal(signed(FRACTION_BITS + 3))
        is_sign = step == FRACTION_BITS
        masked = Mux(multiplier[0], multiplicand, 0)
        m.d.comb += partial.eq(Mux(is_sign, product - masked, product + masked))

        half = total << FRACTION_BITS - self.part.sum_bits
        estimate = Signal(signed(FRACTION_BITS + 2), reset_less=True)
        improved = Signal(signed(FRACTION_BITS + 2))
        error = Signal(signed(FRACTION_BITS + 1))
        constant, slope = RECIPROCAL_ESTIMATE
        m.d.comb += [
            improved.eq(Mux(phase == 1, product + constant, estimate + (product << 2))),
            error.eq((1 << FRACTION_BITS - 2) - product),
        ]
        quotient = Signal(ROUNDED_BITS, reset_less=True)
        rounded = Signal(ROUNDED_BITS)
        m.d.comb += rounded.eq((quotient + 1) >> 1)

        def start(a, b):
            """Multiply; the product is rounded, halves up."""
            return [
                multiplicand.eq(a),
                multiplier.eq(b),
                product.eq(1 << FRACTION_BITS - 1),
                step.eq(0),
            ]

        with m.FSM():
            pixel.add_states(
                m, clear=[shifts.eq(shift_steps), step.eq(0), phase.eq(0)],
                done="NORMALIZE" if shift_steps else "PREPARE",
            )
            pixel.add_output_states(m, self.o, Mux(rounded[8], 127, rounded - 128))
            with m.State("NORMALIZE"):
                m.d.sync += step.eq(step + 1)
                with m.If(~total[-1]):
                    m.d.sync += [total.eq(total << 1), shifts.eq(shifts - 1)]
                with m.If(step == shift_steps - 1):
                    m.next = "PREPARE"
            with m.State("PREPARE"):
                m.d.sync += phase.eq(phase + 1)
                m.next = "MULTIPLY"
                with m.If(phase == 0):
                    m.d.sync += start(half, slope)
                with m.Elif(phase == PRODUCTS):
                    # The reciprocal: its double would be 1 or more only if the sum is a power of 2.
                    is_one = improved[FRACTION_BITS - 1:].any()
                    m.d.sync += estimate.eq(
                        Mux(is_one, (1 << FRACTION_BITS) - 1, improved << 1)
                    )
                    m.next = "READ"
                with m.Elif(phase[0]):
                    m.d.sync += [estimate.eq(improved), *start(half, improved)]
                with m.Else():
                    m.d.sync += start(estimate, error)
            with m.State("START"):
                m.d.sync += start(estimate, pixel.exponential)
                m.next = "MULTIPLY"
            with m.State("MULTIPLY"):
                m.d.sync += [
                    product.eq(Mux(is_sign, partial, partial >> 1)),
                    multiplier.eq(multiplier >> 1),
                    step.eq(step + 1),
                ]
                with m.If(is_sign):
                    m.d.sync += [
                        step.eq(0),
                        quotient.eq(partial >> FRACTION_BITS - ROUNDED_BITS),
                    ]
                    m.next = "PREPARE"
                    with m.If(phase > PRODUCTS):
                        m.next = "SHIFT" if shift_steps else "OUTPUT"
            with m.State("SHIFT"):
                m.d.sync += step.eq(step + 1)
                with m.If(step < shifts):
                    m.d.sync += quotient.eq(quotient >> 1)
                with m.If(step == shift_steps - 1):
                    m.next = "OUTPUT"
        return m
