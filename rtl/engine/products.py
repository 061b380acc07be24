"""The products of the shared engine's array, and their sums over lanes."""

from amaranth import *

from nnef_hw.parts.engine.engine import Engine
from nnef_hw.parts.engine.sizes import CODE_BITS
from nnef_hw.rtl.arrays.multiplier import ProductOfSums, ProductPair

__all__ = ["add_products"]


def add_products(m, part: Engine, codes, weights):
    """Multiply codes by the weights of every row, and add a row's products in a tree.

    The first ``plain_rows`` rows have a multiplier for every product. In the others one makes
    two of them, as in a :class:`.fast_array.FastArray`: from a row's sum that of the products of
    codes is taken, which all these rows share, and the products of weights belong to the bias.

    Golden model: ``sums[r] = sum over lanes of code * weight``; of the fast rows plus
    :func:`.fast_offsets` of the word. Never waits.

    Parameters
    ----------
    m : Module
        Gets all of it.
    part : Engine
    codes : Value
        Unsigned codes of 8 bits, lane 0 lowest.
    weights : Value
        Signed weights of 8 bits, row 0 lowest.

    Returns
    -------
    products : list[list[Value]]
        Of the plain rows, by lane, ``2 + part.pipeline.product_cycles`` cycles later.
    sums : list[Value]
        Of all rows, ``tree_cycles`` after these.
    """
    made = _Products(m, part, codes, weights)
    products = made.plain()
    sums = made.trees(products)
    if part.array.fast:
        sums = [_register(m, total, f"late_tree{n}") for n, total in enumerate(sums)]
        sums += made.fast_trees()
    return products, sums


class _Products:
    """Hardware that :func:`add_products` adds to a module."""

    def __init__(self, m, part, codes, weights):
        self.m = m
        self.part = part
        self.codes = codes
        self.weights = weights

    def plain(self):
        """Return the products of the plain rows and their lanes."""
        array = self.part.array
        operands = [
            (self.codes.word_select(lane, CODE_BITS), self._weight(row, lane))
            for row in range(array.plain_rows)
            for lane in range(array.lanes)
        ]
        products = self._pairs(operands, "products", in_dsp=array.runs_in_dsp[0], x_signed=False)
        return [products[row * array.lanes :][: array.lanes] for row in range(array.plain_rows)]

    def _weight(self, row, lane):
        return self.weights.word_select(row * self.part.array.lanes + lane, CODE_BITS).as_signed()

    def _pairs(self, operands, name, *, in_dsp, x_signed):
        """Return the product of each two operands, of which there are an even number."""
        products = []
        for n in range(0, len(operands), 2):
            pair = ProductPair(
                x_bits=CODE_BITS, x_signed=x_signed, w_bits=CODE_BITS, in_dsp=n + 1 < in_dsp
            )
            self.m.submodules[f"{name}{n // 2}"] = pair
            self.m.d.comb += [
                pair.x0.eq(operands[n][0]),
                pair.w0.eq(operands[n][1]),
                pair.x1.eq(operands[n + 1][0]),
                pair.w1.eq(operands[n + 1][1]),
            ]
            products += self._after([pair.p0, pair.p1], f"{name}{n // 2}_product")
        return products

    def _after(self, products, name):
        """Return products behind registers that are near the adders, if there are any."""
        return _registers(self.m, products, name) if self.part.pipeline.product_cycles else products

    def trees(self, products):
        """Return the sum over the lanes of every row, two adders in a row per cycle."""
        totals = []
        for row, level in enumerate(products):
            for depth in range(1, self.part.array.tree_levels + 1):
                level = _halved(level)
                if depth % 2 == 0 or len(level) == 1:
                    level = _registers(self.m, level, f"tree{row}_{depth}")
            totals += level
        return totals

    def fast_trees(self):
        """Return the same of the other rows, less the products of codes.

        These take a cycle less, for they have no sums of factors, and wait for a row's products
        in a register of their own: in the last level of its tree they are taken from them.
        """
        part = self.part
        codes = [
            Cat(code[:-1], ~code[-1]).as_signed()
            for code in (self.codes.word_select(n, CODE_BITS) for n in range(part.array.lanes))
        ]
        pairs = list(zip(codes[::2], codes[1::2], strict=True))
        level = self._pairs(pairs, "common", in_dsp=part.array.runs_in_dsp[2], x_signed=True)
        for stage in range(part.array.tree_stages):
            level = _registers(self.m, _halved(_halved(level)), f"common_{stage}")
        [common] = level
        totals = []
        for row in range(part.array.plain_rows, part.array.rows):
            level = []
            for n, pair in enumerate(pairs):
                number = (row - part.array.plain_rows) * len(pairs) + n
                unit = ProductOfSums(
                    x_bits=CODE_BITS, w_bits=CODE_BITS, in_dsp=number < part.array.runs_in_dsp[1]
                )
                self.m.submodules[f"fast{row}_{n}"] = unit
                self.m.d.comb += [
                    unit.x0.eq(pair[0]),
                    unit.x1.eq(pair[1]),
                    unit.w0.eq(self._weight(row, 2 * n)),
                    unit.w1.eq(self._weight(row, 2 * n + 1)),
                ]
                level += self._after([unit.p], f"fast{row}_{n}_product")
            for depth in range(1, part.array.tree_levels + 1):
                level = [level[0] - common] if len(level) == 1 else _halved(level)
                if depth % 2 == 0 or depth == part.array.tree_levels:
                    level = _registers(self.m, level, f"tree{row}_{depth}")
            totals += level
        return totals


def _halved(level):
    """Return the sums of each two neighbours, or the only one that there is."""
    if len(level) == 1:
        return level
    return [one + other for one, other in zip(level[::2], level[1::2], strict=True)]


def _register(m, value, name):
    """Return a value of a cycle ago."""
    register = Signal.like(value, name=name, reset_less=True)
    m.d.sync += register.eq(value)
    return register


def _registers(m, level, name):
    return [_register(m, value, f"{name}_{n}") for n, value in enumerate(level)]
