"""Vision transformers on the engine, where memory is short."""

import pytest
from engine_graphs import BOARD, planned
from sweeps import covering
from vision_graphs import DEIT_TINY, vision_transformer

from nnef_hw.engine.planning.solver import schedule_engine
from nnef_hw.flow.survey import roughly_fixed

pytestmark = pytest.mark.system

SIZES = {
    "three_heads": {"side": 32, "patch": 8, "features": 24, "heads": 3, "layers": 2, "classes": 5},
    "two_heads": {"side": 24, "patch": 8, "features": 32, "heads": 2, "layers": 1, "classes": 9},
}
ARRAYS = {
    "ring": {"rows": 8, "lanes": 8, "results": 4, "ring_words": 256},
    "ways": {"rows": 16, "lanes": 8, "results": 2, "ring_words": 256, "unit_ways": 2},
    "alone": {"rows": 8, "lanes": 8, "results": 2},
}
SPARING = {
    "head_by_head": True, "splits_pixels": True, "single_copy": True, "lut_matrices": True,
}  # fmt: skip


@pytest.mark.parametrize(("name", "array"), covering([*SIZES], [*ARRAYS]))
def test_all_that_saves_memory_together(name, array, fix, rng, run_engine):
    graph = fix(vision_transformer(rng, **SIZES[name]))
    plain, plan = (planned(graph, **ARRAYS[array], **own) for own in ({}, SPARING))
    placement = plan.design.placement
    assert len(placement.rounds) == len(placement.replacing.tensors) == SIZES[name]["layers"]
    assert plan.resources.bram < plain.resources.bram
    run_engine(plan, graph)
    run_engine(plan, graph, stall=0.3)


@pytest.mark.nightly
def test_deit_tiny_has_room_beside_sdram(rng):
    """DeiT-Tiny as timm exports it, of which docs/howto/transformers.md speaks, takes 72 more."""
    graph = roughly_fixed(vision_transformer(rng, **DEIT_TINY), None)
    plan = schedule_engine(graph, BOARD)
    assert plan.interval == 6_998_684
    assert plan.resources.bram == 199
