"""Results as tables: lines of key and value, then rows."""

from rich.console import Console

from nnef_hw.report.wording.tables import result_tables


def lines(result):
    console = Console(width=80)
    with console.capture() as shown:
        for table in result_tables(result):
            console.print(table)
    return [" ".join(line.split()) for line in shown.get().splitlines()]


def test_values_lists_and_objects():
    result = {
        "samples": 1450, "is_exact": True, "none": None, "empty": [], "tools": ["a 1", "b 2"],
        "accuracy": {"float": 0.5, "fixed": None, "rtl": 0.25}, "rows": [{"name": "x", "n": 3}],
    }  # fmt: skip
    assert lines(result) == [
        "samples 1,450", "is exact yes", "tools a 1, b 2", "accuracy float 0.5, rtl 0.25",
        "name n", "x 3",
    ]  # fmt: skip


def test_a_long_object_has_lines_and_rows_of_its_own():
    """As a board's speed has, with what its layers did."""
    speed = {"board": "b", "frames": 2, "c": 1, "d": 1, "e": 1, "f_g": 1, "layers": [{"name": "x"}]}
    assert lines({"speed": speed}) == [
        "speed board b", "speed frames 2", "speed c 1", "speed d 1", "speed e 1", "speed f g 1",
        "name", "x",
    ]  # fmt: skip


def test_long_values_are_whole():
    number = "0123456789" * 12
    assert "".join(lines({"hash": number})) == f"hash {number}"
