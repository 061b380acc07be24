"""A chip with registers behind two wires, as a test sees it cycle by cycle."""

__all__ = ["Chip"]


class Chip:
    """Registers that are written, and read from one on; each reading is of the next instant.

    One of them tells what the chip is.

    Attributes
    ----------
    written
        Registers and values, in the order in which they came.
    readings
        Registers from which was read.
    """

    def __init__(self, address, instants, *, identity=(0x75, 0x68), answers=True):
        self.address, self.instants, self.answers = address, instants, answers
        self.identity = dict([identity])
        self.written, self.readings = [], []
        self._before = (1, 1)
        self._bits, self._bytes, self._sends = None, [], None
        self.low = False
        """Whether the chip pulls the data wire low."""

    def see(self, scl, sda):
        """Take the levels of the wires in a cycle."""
        scl_before, sda_before = self._before
        self._before = scl, sda
        if scl and scl_before and sda != sda_before:
            if sda:
                self._bits, self.low = None, False
            else:
                self._bits, self._bytes, self._sends = [], [], None
        elif self._bits is not None and scl and not scl_before:
            self._bits.append(sda)
        elif self._bits is not None and scl_before and not scl:
            self._falls()

    def _falls(self):
        count = len(self._bits)
        self.low = False
        if count == 9:
            acknowledged = not self._bits[8]
            self._bits = []
            if self._sends:
                self._sends = self._sends[1:] if acknowledged else None
                if self._sends is None:
                    self._bits = None
            elif self.answers and self._bytes == [self.address << 1 | 1]:
                if self.register in self.identity:
                    self._sends = [self.identity[self.register]]
                else:
                    self.readings.append(self.register)
                    self._sends = self.instants[len(self.readings) - 1]
            count = 0
        elif count == 8 and not self._sends:
            self._bytes.append(int("".join(map(str, self._bits)), 2))
            self.low = self._takes()
        if self._sends and count < 8:
            self.low = not self._sends[0] >> (7 - count) & 1

    def _takes(self):
        if not self.answers or self._bytes[0] >> 1 != self.address:
            return False
        if len(self._bytes) == 2:
            self.register = self._bytes[1]
        elif len(self._bytes) > 2:
            self.written.append((self.register, self._bytes[-1]))
        return True
