"""Where tensors are put."""

from nnef_hw.engine.memory.memory_plan import Stay, allocate, allocate_banks


def test_tensors_that_never_meet_share_a_place():
    places, words = allocate([Stay("a", 5, 0, 1), Stay("b", 3, 1, 2), Stay("c", 5, 2, 3)])
    assert places == {"a": 0, "c": 0, "b": 5}
    assert words == 8


def test_a_sum_takes_the_place_of_what_is_added():
    stays = [
        Stay("x", 4, 0, 2), Stay("y", 4, 1, 2), Stay("sum", 4, 2, 3, replaces="x"),
    ]  # fmt: skip
    places, words = allocate(stays)
    assert places["sum"] == places["x"]
    assert words == 8
    kept, words = allocate([Stay("x", 4, 0, 3), *stays[1:]])
    assert len(set(kept.values())) == 3
    assert words == 12


def test_some_tensors_come_first():
    stays = [Stay("x", 4, 0, 2), Stay("y", 6, 1, 2), Stay("z", 8, 2, 3)]
    assert allocate(stays) == ({"z": 0, "y": 8, "x": 14}, 18)
    assert allocate(stays, before=["x"]) == ({"x": 0, "z": 4, "y": 12}, 18)


def test_other_sizes_do_not_share():
    places, words = allocate([Stay("x", 4, 0, 2), Stay("sum", 5, 2, 3, replaces="x")])
    assert words == 9
    assert places == {"sum": 0, "x": 5}


def test_banks():
    """A tensor that is read and one that is written meanwhile are apart, a sum is with its term."""
    stays = [Stay("x", 4, 0, 1), Stay("y", 6, 1, 3), Stay("z", 4, 2, 3), Stay("s", 6, 3, 4, "y")]
    apart = [("x", "y"), ("y", "z"), ("z", "s")]
    places = allocate_banks(stays, apart, 8)
    assert places == {"x": 0, "z": 0, "y": 8, "s": 8}
    assert allocate_banks(stays, apart, 5) is None
    assert allocate_banks(stays, [*apart, ("y", "z"), ("x", "z")], 8) is None
    parted = allocate_banks(stays, [*apart[:2], ("y", "s")], 10)
    assert parted == {"x": 0, "z": 6, "y": 10, "s": 0}
