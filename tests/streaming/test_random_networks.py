"""Random networks of all operators: codes and cycles of whole accelerators, with stalls."""

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, reject, seed, settings
from streamable_graphs import random_networks
from sweeps import few

from nnef_hw.boards import find_board
from nnef_hw.errors import ErrorGroup, TargetError, UnsupportedError
from nnef_hw.streaming.beats.beats import predict_interval, simulate_beats
from nnef_hw.streaming.beats.steady import cycles_per_frame
from nnef_hw.streaming.search.solver import schedule

FRAMES = 2
STEADY = 48
LONG = 64
SHARDS = 2
PER_SHARD = 4
LONG_RUNS = 2
NIGHTLY_SHARDS = 10
PER_NIGHTLY_SHARD = 50


def fitted(graph, board):
    """Plan a network for a board, or for a big one if it is too big."""
    try:
        return find_board(board), schedule(graph, find_board(board))
    except TargetError:
        return find_board("ecp5"), schedule(graph, find_board("ecp5"))


def check_steady(plan, frames):
    """Frames of a long run leave as the plan says, once they do so at all."""
    times = simulate_beats(plan.blocks, plan.inputs, plan.outputs, frames)
    ends = np.array(times.last_outputs)
    assert cycles_per_frame(ends, plan.period) == predict_interval(plan, frames)
    if plan.settling is not None:
        spacings = ends[plan.period :] - ends[: -plan.period]
        assert len(set(spacings[plan.settling :].tolist())) <= 1


def check_networks(start, count, phases, fix, force, simulate, rng, *, frames=FRAMES, outputs=1):
    """Build and run that many networks; hypothesis reports one that fails.

    Of so many outputs at least. Short runs are simulated at once, long ones compiled first.
    """
    state = rng.bit_generator.state

    @seed(start)
    @settings(
        max_examples=count, deadline=None, database=None,
        phases=phases, suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(random_networks())
    def run(network):
        rng.bit_generator.state = state
        try:
            if len(network.graph.outputs) < outputs:
                reject()
            graph = fix(network.graph, **network.scheme)
            target, plan = fitted(graph, network.board)
        except (ErrorGroup, UnsupportedError):
            reject()
        if network.forced:
            plan = force(plan, graph, target)
        check_steady(plan, max(2 * frames, STEADY))
        simulate(plan, graph, None if frames == FRAMES else "verilator").check(frames)

    run()


@pytest.mark.parametrize("shard", few(range(SHARDS), [0]))
def test_codes_and_cycles(shard, fix, force, simulate, rng):
    check_networks(shard, PER_SHARD, [Phase.generate], fix, force, simulate, rng)


@pytest.mark.verilator
@pytest.mark.parametrize("shard", few(range(LONG_RUNS), [0]))
def test_long_runs(shard, fix, force, simulate, rng):
    """Every border beat of every frame, and all codes, of networks of several outputs, too."""
    several = 1 + shard % 2
    check_networks(
        100 + shard, 2, [Phase.generate], fix, force, simulate, rng, frames=LONG, outputs=several
    )


@pytest.mark.verilator
@pytest.mark.nightly
@pytest.mark.parametrize("shard", range(NIGHTLY_SHARDS))
def test_codes_and_cycles_of_many(shard, fix, force, simulate, rng):
    """Shrinking takes minutes."""
    phases = [Phase.generate, Phase.shrink]
    check_networks(
        1000 + shard, PER_NIGHTLY_SHARD, phases, fix, force, simulate, rng, frames=LONG,
        outputs=1 + shard % 2,
    )  # fmt: skip
