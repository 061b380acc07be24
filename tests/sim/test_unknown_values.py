"""Random accelerators under Icarus Verilog: unknown registers at power-up, resets at any time."""

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, reject, seed, settings
from icarus_bench import run_bench, without_initial_values
from streamable_graphs import random_networks

from nnef_hw.boards import find_board
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.errors import ErrorGroup, TargetError, UnsupportedError
from nnef_hw.reference import run_fixed
from nnef_hw.run.rtl import payloads
from nnef_hw.run.simulate import random_codes
from nnef_hw.streaming.beats.beats import simulate_beats
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule

pytestmark = pytest.mark.icarus

FRAMES = 2
SHORT = 2
SHARDS = 10
PER_SHARD = 10


def check_networks(start, count, fix, rng, folder):
    """Compare random networks: unknown registers, stalls and a reset; and a start without one."""
    state = rng.bit_generator.state

    @seed(start)
    @settings(max_examples=count, deadline=None, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(random_networks())
    def run(network):
        rng.bit_generator.state = state
        try:
            graph = fix(network.graph, **network.scheme)
            plan = schedule(graph, find_board("ecp5"))
        except (ErrorGroup, UnsupportedError, TargetError):
            reject()
        verilog = to_verilog(Accelerator(plan, graph))
        codes = random_codes(graph, FRAMES)
        fed = payloads(graph.inputs, plan.inputs, codes)
        expected = payloads(graph.outputs, plan.outputs, run_fixed(graph, codes))
        times = simulate_beats(plan.blocks, plan.inputs, plan.outputs, FRAMES)
        predicted = int(np.max(times.last_outputs))
        amid = int(rng.integers(1, predicted + 1))
        run_bench(folder, without_initial_values(verilog), fed, expected, stall=40, amid=amid,
                  start=start)  # fmt: skip
        last = run_bench(folder, verilog, fed, expected, stall=0, amid=None, start=start)
        assert last == predicted

    run()


def test_unknown_values_reach_no_port(fix, rng, tmp_path):
    check_networks(0, SHORT, fix, rng, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("shard", range(SHARDS))
def test_unknown_values_of_many_networks(shard, fix, rng, tmp_path):
    check_networks(1 + shard, PER_SHARD, fix, rng, tmp_path)
