"""A sweep on the workers of dask.distributed, which share no folder with us, and die."""

import os
import warnings
from pathlib import Path

import distributed
import pytest
from jobs_that_die import dies_once

from nnef_hw.explore import explore
from nnef_hw.system.workers import Here

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """Address of a scheduler with two workers, each in a folder of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folders = [tmp_path_factory.mktemp(f"worker{n}") for n in range(2)]
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
            local_directory=str(folders[0]), silence_logs=50,
        ) as cluster, distributed.Client(cluster) as client:  # fmt: skip
            workers = client.scheduler_info(n_workers=-1)["workers"]
            for worker, folder in zip(workers, folders, strict=True):
                client.run(os.chdir, str(folder), workers=[worker])
            yield cluster.scheduler_address


class Deadly:
    """A client of whose jobs the third one kills its worker."""

    def __init__(self, client, marker):
        self.client, self.marker, self.count = client, marker, 0

    def submit(self, *job):
        self.count += 1
        if self.count == 3:
            return self.client.submit(dies_once, str(self.marker), *job)
        return self.client.submit(*job)


@pytest.mark.filterwarnings("default")
def test_a_sweep_outlives_its_workers(scheduler, sweep_of, tmp_path):
    sweep = sweep_of(("icebreaker", "ulx3s_25f"), weight_bits=(8, 4), target_fps=(1e5,))
    marker = tmp_path / "killed"
    with distributed.Client(scheduler) as client:
        found = explore(sweep, tmp_path / "out", Deadly(client, marker))
    assert marker.read_text() != str(Path.cwd())
    assert found == explore(sweep, tmp_path / "here", Here())
    for name in ("points.jsonl", "front.json"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


@pytest.mark.filterwarnings("default")
def test_by_its_address(scheduler, cli, tiny, tmp_path):
    words = (
        "explore", tiny / "tiny.nnef.tgz", "--calibrate", tiny / "samples.npz", "--boards",
        "icebreaker", "--until", "planned", "--target-fps", "1e5", "--json",
    )  # fmt: skip
    found = cli(*words, "--dask", scheduler).json
    assert found["points"] == cli(*words, "--out", tmp_path / "own").json["points"]
    both = cli(*words, "--dask", scheduler, "--jobs", "2")
    assert both.status == both.json["error"]["status"] == 2
    assert "omit it with --dask" in both.err
