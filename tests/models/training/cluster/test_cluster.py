import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from distributed import Client, LocalCluster
from tests.models.next_run.made_up_runs import GAP_SECONDS, SECOND, START_NS, put

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.answers.predictions import Outcome
from crosswind.data.schema.errors import ConflictError, MalformedError, UnavailableError
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store
from crosswind.models.next_run.cases import cases
from crosswind.models.next_run.cohort_store import questions_of
from crosswind.models.next_run.describe import described
from crosswind.models.next_run.run_trees import RunTrees
from crosswind.models.surrogate.trees import Trees
from crosswind.models.training.cluster import train, versions
from crosswind.models.training.cluster.boosting import PARAMETERS, ROUNDS
from crosswind.models.training.cluster.connect import ClusterOptions, connected
from crosswind.models.training.cluster.partitions import partitions_of
from crosswind.models.training.cluster.train import (
    ClusterTraining,
    Features,
    Report,
    errors_of,
    features_of,
    rows_of,
    trees_of,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask's own
RUNS = 400


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    random = np.random.default_rng(0)
    with Store.open(tmp_path_factory.mktemp("store")) as opened:
        for place in range(RUNS):
            batch, ranks, kind = 2 ** (place % 6), 2 ** (place % 4), ("sgd", "adam")[place % 2]
            seconds = (10 + batch) / ranks**0.8 * random.lognormal(0, 0.02)
            settings = {"batch": batch, "optimiser": kind, "layers": place % 9}
            put(opened, f"r{place:04}", seconds, place=place, ranks=ranks, configuration=settings)
        yield opened


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1GiB", dashboard_address=None) as made:
        yield made


@pytest.fixture(scope="module")
def threads() -> Iterator[LocalCluster]:
    """Workers in this process, which talk as others do."""
    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(processes=False, protocol="tcp://", **options) as made:
        yield made


def described_on(client: Client, store: Store) -> Features:
    return features_of(client, store, Outcome.RUN, report=Report(), runs_at_once=50)


def test_partitions_begin_with_a_day_and_leave_no_run_out(store: Store) -> None:
    partitions = partitions_of(store, 50)
    assert len(partitions) == 8
    assert [until for _, until in partitions[:-1]] == [since for since, _ in partitions[1:]]


def test_features_are_those_of_one_process(store: Store, threads: LocalCluster) -> None:
    rows = cases(store, Outcome.RUN)
    with Client(threads) as client:
        every = described_on(client, store)
        whole = pd.concat(client.gather(list(every.frames)))
    alone = described(questions_of(rows)).set_index(pd.Index(rows["run_id"]))
    assert list(every.kinds) == list(alone.columns)
    for name in alone.columns:
        if every.kinds[name] is None:
            np.testing.assert_allclose(whole[name].astype(float), alone[name].astype(float), rtol=1e-9)
        else:
            assert whole[name].astype(object).tolist() == alone[name].tolist()


def test_a_running_cluster_is_used_by_its_address_unless_it_has_another_version(
    threads: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(threads.scheduler_address, ClusterOptions()) as client:
        assert client.submit(abs, -1).result() == 1
    monkeypatch.setattr(versions, "version", lambda _: "9.9.9")
    with (
        pytest.raises(ConflictError, match=r"of the cluster has Crosswind \d\S+, expected 9\.9\.9 as here"),
        connected(threads.scheduler_address, ClusterOptions()),
    ):
        pass


@contextmanager
def late_worker(address: str, folder: Path) -> Iterator[None]:
    """A worker of another version of Crosswind, in a process of its own."""
    facts = folder / "crosswind-9.9.9.dist-info" / "METADATA"
    facts.parent.mkdir()
    facts.write_text("Metadata-Version: 2.1\nName: crosswind\nVersion: 9.9.9\n")
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--nthreads", "1"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    with subprocess.Popen([*command, "--no-dashboard"], env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.kill()


def test_a_worker_of_another_version_that_comes_late_is_refused_with_its_first_task(
    store: Store, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(processes=False, protocol="tcp://", **options) as made:
        address = made.scheduler_address
        with connected(address, ClusterOptions()) as client, late_worker(address, tmp_path):
            [first] = client.scheduler_info()["workers"]
            client.wait_for_workers(2, timeout=60)
            client.retire_workers([first])
            with pytest.raises(ConflictError, match=r"tcp://\S+ of the cluster has Crosswind 9\.9\.9, expected \S+ as"):
                described_on(client, store)


@pytest.fixture(scope="module")
def alone(store: Store) -> Floats:
    """The medians of one worker's trees, (n_runs,)."""
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as single, Client(single) as client:
        return medians(store, trees_of(described_on(client, store), None, Report()))


def medians(store: Store, trees: RunTrees | None) -> Floats:
    assert trees is not None
    return trees.predict(questions_of(cases(store, Outcome.RUN))).values


@pytest.mark.thorough
@pytest.mark.parametrize("delay_seconds", [0.0, 0.5])
def test_trees_are_those_of_one_worker_also_when_one_of_two_is_killed(
    delay_seconds: float, store: Store, cluster: LocalCluster, alone: Floats
) -> None:
    with Client(cluster) as client:
        client.wait_for_workers(2)
        every, report = described_on(client, store), Killer(client, delay_seconds)
        both = trees_of(every, None, report)
    np.testing.assert_allclose(medians(store, both), alone, rtol=1e-6)
    report.killing.join()


class Killer(Report):
    """Kills a worker so long after the first trees are learned."""

    def __init__(self, client: Client, delay_seconds: float) -> None:
        super().__init__()
        process = next(iter(client.run(os.getpid).values()))
        self.killing = threading.Timer(delay_seconds, os.kill, (process, signal.SIGKILL))

    def at(self, what: str, done: int, total: int, **part: Any) -> None:
        if what == "trees" and not self.killing.ident:
            self.killing.start()


@pytest.mark.thorough
def test_workers_that_die_of_the_work_end_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "features_of", lambda client, *_, **__: client.submit(os._exit, 1).result())
    training = ClusterTraining("local", ClusterOptions(1))
    with Store.open(tmp_path) as own, pytest.raises(UnavailableError, match=r"4 workers died .* expected more memory"):
        training(own, Outcome.RUN)


def test_the_report_shows_what_is_done() -> None:
    report = Report()
    assert report.look() == (0, "waiting for a worker")
    report.at("trees", 20, 100, begin=0.4, end=0.7)
    assert report.look() == (pytest.approx(46), "trees 20 of 100")


@pytest.mark.thorough
def test_a_partition_that_cannot_be_read_is_named_and_left_out_on_request(
    tmp_path: Path, cluster: LocalCluster
) -> None:
    with Store.open(tmp_path / "store") as own, Client(cluster) as client:
        for place in range(21, 21 + 8 * 24):  # eight whole days
            put(own, f"r{place:03}", 5.0, place=place)
            put_steps(own, f"r{place:03}", place)
        days = [folder.name[5:] for folder in sorted((own.home / "lake" / "set=step").glob("date=*"))]
        for file in (own.home / "lake" / "set=step" / f"date={days[5]}").glob("part-*.parquet"):
            file.write_bytes(file.read_bytes()[:-100] + b"\0" * 100)
        named = rf"\d of 8 partitions cannot be read: runs from {days[3]}T.*date={days[5]}/part-.*leave-out-damaged"
        with pytest.raises(MalformedError, match=named):
            features_of(client, own, Outcome.STEP, report=Report(), runs_at_once=24)
        report = Report()
        rest = features_of(client, own, Outcome.STEP, report=report, runs_at_once=24, leaves_out_damaged=True)
        left_out = {part.removeprefix("runs from ")[:10] for part in report.left_out}
        assert left_out >= {days[5]}
        assert left_out <= set(days[3:])  # clocks may differ: steps of a run are also looked for in the days around it
        assert sum(len(frame) for frame in client.gather(list(rest.frames))) == 24 * (8 - len(left_out))


def put_steps(store: Store, run_id: str, place: int) -> None:
    """Stores six steps of 1 s on one rank, of which three count."""
    began = START_NS + place * GAP_SECONDS * SECOND
    columns = {
        "ts_ns": [began + step * SECOND for step in range(6)],
        "run_id": [run_id] * 6,
        "rank": [0] * 6,
        "step": list(range(6)),
        "duration_seconds": [SECOND] * 6,
    }
    store.lake.append(f"{run_id}-0", to_table(STEP, columns))


@pytest.mark.thorough
def test_the_error_on_unseen_cohorts_is_that_of_one_process(store: Store, cluster: LocalCluster) -> None:
    with Client(cluster) as client:
        every = described_on(client, store)
        made = trees_of(every, None, Report())
        whole = pd.concat(client.gather(list(every.frames)))
    assert made is not None
    X, y = rows_of(whole, made.encoding, None)
    alone = xgb.train(PARAMETERS, xgb.QuantileDMatrix(X, label=y, max_bin=256), num_boost_round=ROUNDS)
    errors = [
        np.abs(errors_of(whole, made.encoding, trees, None)).mean()
        for trees in (made.trees, Trees.of(alone, X.shape[1]))
    ]
    assert errors[0] == pytest.approx(errors[1], rel=0.01)
