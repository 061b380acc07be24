"""Where tensors are put."""

from nnef_hw.engine.memory_plan import Stay, allocate


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


def test_other_sizes_do_not_share():
    places, words = allocate([Stay("x", 4, 0, 2), Stay("sum", 5, 2, 3, replaces="x")])
    assert words == 9
    assert places == {"sum": 0, "x": 5}
