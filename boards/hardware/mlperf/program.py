"""The program that answers MLPerf Tiny's runner, and the instructions it is made of.

A word has an operation, a condition and an address; or a character, or an action.
"""

from enum import IntEnum

__all__ = ["Action", "Condition", "Letter", "Operation", "Program", "runner_program"]

NUMBER_DIGITS = 6
"""Digits of a number that is read, printed, or a result."""
TIME_DIGITS = 10
"""Digits of microseconds."""
FIRMWARE = "ULPMark for tinyML Firmware V0.0.1"
"""The profile that all boards of the benchmark answer."""
DEFAULT_WARM_UPS = 10


class Operation(IntEnum):
    """Operation of a word."""

    SEND = 0
    MATCH = 1
    JUMP = 2
    DO = 3


class Letter(IntEnum):
    """Kind of a character that a word sends."""

    GIVEN = 0
    DIGIT = 1
    TIME = 2
    HEARD = 3


class Condition(IntEnum):
    """Condition of a jump; the bit above inverts it."""

    ALWAYS = 0
    CALL = 1
    MATCHED = 2
    END = 3
    DECIMAL = 4
    HEX = 5
    HEARD = 6
    DIGIT = 7
    TIME = 8
    ZERO = 9
    SIZE = 10
    LOADING = 11
    LOADED = 12
    RUNNING = 13
    LAST = 14
    INFERRED = 15
    BUSY = 16
    BEYOND = 17
    MEMORY = 18


class Action(IntEnum):
    """Action of a word, which lasts one cycle."""

    WAIT = 0
    LISTEN = 1
    FIRST = 2
    NEXT = 3
    CLEAR = 4
    DIGIT = 5
    ONE = 6
    TURN = 7
    TURN_TIME = 8
    FREEZE = 11
    THAW = 12
    NIBBLE = 13
    BYTE = 14
    BEGIN = 15
    CANCEL = 16
    RUN = 17
    FIRST_RESULT = 18
    NEXT_RESULT = 19
    RESULT = 20
    MEASURE = 21
    RETURN = 22


class Program:
    """A program that is being written: words, and places that have names.

    Attributes
    ----------
    words : list of tuple
        Operation and operands; of jumps condition, whether it is inverted, and the place's name.
    """

    def __init__(self):
        self.words = []
        self.places = {}
        self._unnamed = 0

    def place(self, name=None):
        """Give the next word a name, and return it."""
        if name is None:
            self._unnamed += 1
            name = f"place{self._unnamed}"
        if name in self.places:
            raise ValueError(f"the program has two places {name!r}")
        self.places[name] = len(self.words)
        return name

    def send(self, text):
        """Send characters."""
        for letter in text.encode("ascii"):
            self.words.append((Operation.SEND, Letter.GIVEN, letter))

    def line(self, text):
        """Send a line."""
        self.send(text + "\r\n")

    def send_letter(self, letter):
        """Send a character that is no constant."""
        self.words.append((Operation.SEND, letter, 0))

    def match(self, letter):
        """Compare the character of the command, and go on to the next if it is equal."""
        self.words.append((Operation.MATCH, Letter.GIVEN, ord(letter)))

    def do(self, action):
        """Do something."""
        self.words.append((Operation.DO, action, 0))

    def jump(self, name, condition=Condition.ALWAYS):
        """Go to a place, if a condition holds."""
        self.words.append((Operation.JUMP, condition, False, name))

    def jump_unless(self, name, condition):
        """Go to a place, if a condition does not hold."""
        self.words.append((Operation.JUMP, condition, True, name))

    def call(self, name):
        """Go to a place, and come back from there with ``RETURN``; calls do not nest."""
        self.jump(name, Condition.CALL)

    @property
    def address_bits(self):
        """Width of an address."""
        return (len(self.words) - 1).bit_length()

    @property
    def argument_bits(self):
        """Width of a word without its operation: condition and address, or a character."""
        return max(6 + self.address_bits, 9)

    def encoded(self):
        """Return the words as numbers: operation lowest, then what it has."""
        found = []
        for operation, *operands in self.words:
            if operation == Operation.JUMP:
                condition, inverted, name = operands
                value = condition | inverted << 5 | self.places[name] << 6
            elif operation == Operation.DO:
                value = operands[0]
            else:
                letter, character = operands
                value = letter | character << 2
            found.append(operation | value << 2)
        return found


def runner_program(*, model, vendor, size, is_distance, with_memory):
    """Return the program of a board.

    Parameters
    ----------
    model, vendor : str
        What it answers of its model and of itself.
    size : int
        Bytes of an input.
    is_distance : bool
        The result is one number; otherwise one for each class.
    with_memory : bool
        The accelerator needs a memory that may be missing.
    """
    p = Program()
    fails = []

    def fail(text, condition=None, *, unless=False):
        """Answer with an error if a condition holds; the text stands behind the program."""
        name = f"error{len(fails)}"
        fails.append((name, text))
        if condition is None:
            p.jump(name)
        elif unless:
            p.jump_unless(name, condition)
        else:
            p.jump(name, condition)

    def skip_spaces():
        again = p.place()
        p.match(" ")
        p.jump(again, Condition.MATCHED)

    def wait_while(condition):
        again = p.place()
        p.jump(again, condition)

    p.line("m-timestamp-mode-performance")
    p.call("lap")
    p.do(Action.THAW)
    p.line("m-init-done")

    p.place("ready")
    p.line("m-ready")
    p.do(Action.LISTEN)
    again = p.place()
    p.jump_unless(again, Condition.HEARD)
    p.do(Action.FIRST)
    skip_spaces()
    p.jump("ready", Condition.END)

    def name():
        p.line(f"m-name-dut-[{vendor}]")

    def timestamp():
        p.call("lap")
        p.do(Action.THAW)

    def profile():
        p.line(f"m-profile-[{FIRMWARE}]")
        p.line(f"m-model-[{model}]")

    def results():
        fail("No inference has been made", Condition.INFERRED, unless=True)
        p.jump("results")

    def db():
        skip_spaces()
        fail("Command 'db' requires a subcommand", Condition.END)
        p.match("l")
        p.jump_unless("not load", Condition.MATCHED)
        for letter in "oad":
            p.match(letter)
            fail("Unknown subcommand of db", Condition.MATCHED, unless=True)
        fail("Unknown subcommand of db", Condition.END, unless=True)
        skip_spaces()
        fail("Command 'db load' requires the # of bytes", Condition.END)
        p.do(Action.CLEAR)
        p.call("number")
        p.do(Action.CANCEL)
        fail(f"The input has {size} bytes", Condition.SIZE, unless=True)
        p.do(Action.BEGIN)
        p.line(f"m-[Expecting {size} bytes]")
        p.jump("ready")

        p.place("not load")
        fail("Unknown subcommand of db", Condition.HEX, unless=True)
        fail("Command 'db load' comes first", Condition.LOADING, unless=True)
        more = p.place()
        for _ in range(2):
            p.jump_unless("no digit", Condition.HEX)
            p.do(Action.NIBBLE)
        p.do(Action.BYTE)
        wait_while(Condition.BUSY)
        p.jump("loaded", Condition.LOADED)
        p.jump_unless(more, Condition.END)
        p.jump("ready")
        p.place("loaded")
        p.line("m-load-done")
        p.jump("ready")
        p.place("no digit")
        p.do(Action.CANCEL)
        fail("Not an even number of hex digits: load again")

    def infer():
        fail(f"The input of {size} bytes is not loaded", Condition.LOADED, unless=True)
        if with_memory:
            fail("The memory of weights does not answer", Condition.MEMORY)
        p.call("runs")
        fail("Inference iterations must be >0", Condition.ZERO)
        p.do(Action.CLEAR)
        skip_spaces()
        p.jump_unless("warm-ups", Condition.END)
        # ten
        p.do(Action.ONE)
        p.do(Action.TURN)
        p.jump("go")
        p.place("warm-ups")
        p.call("number")
        p.place("go")
        p.send("m-warmup-start-")
        p.call("print")
        p.jump("warm", Condition.ZERO)
        p.do(Action.RUN)
        wait_while(Condition.RUNNING)
        p.do(Action.THAW)
        p.place("warm")
        p.line("m-warmup-done")
        p.send("m-infer-start-")
        # the command is still there
        p.call("runs")
        p.call("print")
        p.call("lap")
        p.do(Action.RUN)
        wait_while(Condition.RUNNING)
        p.call("lap")
        p.do(Action.THAW)
        p.line("m-infer-done")

        p.place("results")
        if is_distance:
            p.do(Action.MEASURE)
            wait_while(Condition.BUSY)
            fail("A number of the input, or the result, is out of range", Condition.BEYOND)
            p.send("m-results-[")
            _digits(p, NUMBER_DIGITS - 3, Condition.DIGIT, Action.TURN, Letter.DIGIT)
            p.send(".")
            for _ in range(3):
                p.send_letter(Letter.DIGIT)
        else:
            p.do(Action.FIRST_RESULT)
            p.send("m-results-[")
            following = p.place()
            # the memory of results, then that of their digits
            p.do(Action.WAIT)
            p.do(Action.RESULT)
            p.send_letter(Letter.DIGIT)
            p.send(".")
            for _ in range(3):
                p.send_letter(Letter.DIGIT)
            p.jump("end of results", Condition.LAST)
            p.do(Action.NEXT_RESULT)
            p.send(",")
            p.jump(following)
            p.place("end of results")
        p.line("]")

    words = {"name": name, "timestamp": timestamp, "profile": profile, "infer": infer, "db": db,
             "results": results}
    if len({word[0] for word in words}) < len(words):
        raise ValueError("words are told apart by their first letters")
    for word, answer in words.items():
        p.match(word[0])
        p.jump_unless(f"not {word}", Condition.MATCHED)
        for letter in word[1:]:
            p.match(letter)
            p.jump_unless("unknown", Condition.MATCHED)
        p.jump_unless("unknown", Condition.END)
        answer()
        p.jump("ready")
        p.place(f"not {word}")

    p.place("unknown")
    p.send("e-[Unknown command: ")
    p.do(Action.FIRST)
    skip_spaces()
    more = p.place()
    p.jump("close", Condition.END)
    p.send_letter(Letter.HEARD)
    p.do(Action.NEXT)
    p.jump(more)

    # a text once, however many words lead to it
    for text in dict.fromkeys(text for _, text in fails):
        for key, other in fails:
            if other == text:
                p.place(key)
        p.send("e-[" + text)
        p.jump("close")
    p.place("close")
    p.line("]")
    p.jump("ready")

    p.place("runs")
    p.do(Action.CLEAR)
    p.do(Action.FIRST)
    skip_spaces()
    again = p.place()
    p.do(Action.NEXT)
    p.jump_unless(again, Condition.END)
    skip_spaces()
    p.jump_unless("number", Condition.END)
    p.do(Action.ONE)
    p.do(Action.RETURN)

    p.place("number")
    p.jump("no more digits", Condition.END)
    fail_number = "not a number"
    p.jump_unless(fail_number, Condition.DECIMAL)
    p.jump(fail_number, Condition.DIGIT)
    p.do(Action.DIGIT)
    p.jump("number")
    p.place("no more digits")
    p.do(Action.RETURN)
    p.place(fail_number)
    p.send(f"e-[Not a number of 0 to {'9' * NUMBER_DIGITS}")
    p.jump("close")

    p.place("print")
    _digits(p, NUMBER_DIGITS, Condition.DIGIT, Action.TURN, Letter.DIGIT)
    p.line("")
    p.do(Action.RETURN)

    p.place("lap")
    p.do(Action.FREEZE)
    p.send("m-lap-us-")
    _digits(p, TIME_DIGITS, Condition.TIME, Action.TURN_TIME, Letter.TIME)
    p.line("")
    p.do(Action.RETURN)
    return p


def _digits(p, count, begins, turn, letter):
    """Send digits of a number, highest first, without zeros ahead; all of them turn past."""
    names = [f"{letter.name} {count} from {n} at {len(p.words)}" for n in range(count)]
    for name in names[:-1]:
        p.jump(name, begins)
        p.do(turn)
    p.jump(names[-1])
    for name in names:
        p.place(name)
        p.send_letter(letter)
