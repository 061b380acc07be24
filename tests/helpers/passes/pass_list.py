"""Which cases of a third-party suite pass: a file that may only grow."""

from pathlib import Path

FOLDER = Path(__file__).parents[2] / "cases" / "suites"


class PassList:
    """``NAME`` on a line: the case passes. ``NAME: reason``: it does not, and why."""

    def __init__(self, suite):
        lines = (FOLDER / f"{suite}.txt").read_text().splitlines()
        entries = [line.partition(": ") for line in lines if line and not line.startswith("#")]
        self.passing = [name for name, _, reason in entries if not reason]
        self.exceptions = {name: reason for name, _, reason in entries if reason}

    def missing(self, names):
        """Return the cases of a suite that stand in neither part."""
        return sorted(set(names) - {*self.passing, *self.exceptions})
