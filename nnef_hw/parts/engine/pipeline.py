"""The pipeline of a shared engine: the cycles from one place of it to another."""

from __future__ import annotations

from nnef_hw.parts.engine.program import MOST_CONSTANTS, EngineProgram

__all__ = ["EnginePipeline"]


class EnginePipeline(EngineProgram):
    """How many cycles what an engine does takes; none of it ever waits inside."""

    @property
    def requantizer_delay(self) -> int:
        """Cycles from a sum to its code: constant, bias, multipliers, (first) rounding, limits."""
        return self.constant_cycles + self.stages + 2 + (2 if self.rounds_twice else 0)

    @property
    def constant_cycles(self) -> int:
        """Cycles from the address of constants, a cycle ahead of the sums, to their sum."""
        return 2 if self.is_spread else 1

    @property
    def residual_begin(self) -> int:
        """Cycles from a code until its sum with another one is begun, where that is bit by bit.

        The address of the other word, waiting for the memory, the word, its register.
        """
        return 4

    @property
    def residual_delay(self) -> int:
        """Cycles from a code to its sum with another one.

        Memory, choice, products, sum, limits; or, bit by bit, the bits, offset, limits.
        """
        if self.residual_cycles > 1:
            return self.residual_begin + 1 + self.residual_cycles + 2
        return self.other_cycles + 4 if self.residual_bits else 0

    @property
    def table_delay(self) -> int:
        """Cycles from a code to its function."""
        return 1 if self.tables else 0

    def other_stage(self, *, by_lane: bool) -> int:
        """Return the cycles from the issue of a pass's last word to that in which none is, then.

        A word is read in the cycle after its issue, and what is added to the first result in that
        in which this comes from the requantizer, or in the next one if it is added bit by bit.
        """
        later = int(self.residual_cycles > 1)
        return self.keep_stage(by_lane=by_lane) + self.requantizer_delay + later

    @property
    def freed_cycles(self) -> int:
        """Cycles from the end of an instruction until the places of what it read can be taken."""
        return 1 + self.read_stage

    @property
    def operand_stage(self) -> int:
        """Cycles from the issue of a word to its codes and weights at the multipliers."""
        return self.read_stage + (1 if self.direct else 1 + self.code_cycles)

    @property
    def address_cycles(self) -> int:
        """Cycles from the address of a word of codes or weights until it is at the memory."""
        return int(self.is_spread)

    @property
    def code_cycles(self) -> int:
        """Cycles from the address of a word of codes to the word."""
        return self.address_cycles + (3 if self.is_spread else 1)

    @property
    def other_cycles(self) -> int:
        """Cycles from the address of a word that is added to the word.

        As for codes; but there is no time for any register bit by bit.
        """
        return self.code_cycles if self.residual_cycles == 1 else 1

    @property
    def write_cycles(self) -> int:
        """Cycles from a word that is collected until it is written.

        What the feed takes is written as late, which nothing has to wait for.
        """
        return 1 + self.address_cycles

    @property
    def sum_stage(self) -> int:
        """Cycles from the issue of a word until its products are added."""
        return self.operand_stage + 2 + self.product_cycles

    @property
    def product_cycles(self) -> int:
        """Registers behind the multipliers besides their own."""
        return int(self.is_spread)

    def keep_stage(self, *, by_lane: bool) -> int:
        """Return the cycles from the issue of the last word of a pass until its sums are kept."""
        return self.sum_stage + 1 + (0 if by_lane else self.tree_cycles)

    def drain(self, *, adds: bool) -> int:
        """Return the cycles after a layer's last word was issued in which nothing else begins.

        The first word that an instruction reads two cycles later finds all codes written.

        Parameters
        ----------
        adds
            Whether the layer's codes are added to others.
        """
        slowly = self.residual_cycles > 1
        results = (self.rows // self.results - 1) * self.pace(adds=adds) + 1
        behind = self.requantizer_delay + self.table_delay
        behind += self.residual_delay if adds or not slowly else 0
        # a write to single-port RAM may wait for a cycle
        waits = int(self.single_port is not None and self.residual_bits > 0 and not slowly)
        waits += self.write_cycles - 1
        return self.keep_stage(by_lane=False) - 1 + results + behind + waits

    def pace(self, *, adds: bool) -> int:
        """Return the cycles from a result of a pass to the next one."""
        return self.residual_cycles if adds else 1

    @property
    def setup(self) -> int:
        """Cycles in which an instruction is read: from the first row until its fields are there."""
        return self.instruction_rows + self.read_stage

    def settle(self, *, adds: bool) -> int:
        """Return the cycles after a layer's last word before the next one begins, at least."""
        rows = self.instruction_rows - self.late_row + self.read_stage - 1
        return self.drain(adds=adds) + rows - self.late_ahead

    @property
    def late_ahead(self) -> int:
        """Cycles by which these rows are read before the last codes are written.

        A row is there ``read_stage`` cycles later, of which one is not needed. What the requantizer
        and all before it need is in a single row; it comes when they are through. Codes that are
        collected to words in two ways are behind it.
        """
        behind = self.residual_bits or self.tables or (self.gathers and self.results > 1)
        return self.read_stage - 1 + int(not behind and self.instruction_rows - self.late_row == 1)

    @property
    def border_cycles(self) -> int:
        """Cycles from the begin of an instruction until the loader and the sender know of it."""
        return int(self.is_spread)

    @property
    def before_load(self) -> int:
        """Cycles from the begin of a load to its first code, padding included."""
        return self.border_cycles + 1

    @property
    def border_delay(self) -> int:
        """Cycles from the last code that is loaded or sent until the instruction ends."""
        return 1

    @property
    def before_send(self) -> int:
        """Cycles from the begin of a send until its first code is offered."""
        return self.border_cycles + 2 + self.between_words

    @property
    def between_words(self) -> int:
        """Cycles from the last code of a word that is offered to the first one of the next."""
        return 2 if self.direct else 2 + self.code_cycles

    @property
    def constants_ahead(self) -> int:
        """Constants that may come before those of instructions that run are freed.

        Results on their way still need those of the instruction that has ended last, and, if the
        next one ends before they have left, of the one before.
        """
        ended = 1
        for pace in {1, self.residual_cycles}:
            needed = self.keep_stage(by_lane=False) + self.rows // self.results * pace + 1
            # A pass that is added bit by bit has at least so many words.
            words = self.lanes * pace if pace > 1 else 2
            if self.setup + 1 + words < needed:
                ended = 2
        return self.constant_words - ended * max(MOST_CONSTANTS, self.rows // self.results)
