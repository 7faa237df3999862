from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.job import Job
from crosswind.data.schema.metric import NODE_KEYS, Column, Kind, MetricSet
from crosswind.data.schema.occupancy import Allocation, Placement, Source
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.join import rows_of_job, rows_of_run
from crosswind.data.store.store import Store

CPU = MetricSet("cpu", "", (*NODE_KEYS, Column("user_seconds_total", "", Kind.COUNTER, unit="seconds", scale=0.01)))
PROCESS = MetricSet("process", "", (*NODE_KEYS, Column("start_ticks", "", Kind.EPOCH)))
GPU = MetricSet("gpu", "", (*NODE_KEYS, Column("index", "", Kind.FACT), Column("power_watts", "", unit="watts")))
LINK = MetricSet("link", "", (Column("ts_ns", "", Kind.KEY), Column("up", "")))
TIMES = range(0, 100, 10)

MINE = Allocation("7", "n1", "n1.lab", Source.PROLOG, "lab", started_ns=20, ended_ns=50, gpus=("1",))
OTHER = Allocation("8", "n1", "n1.lab", Source.PROLOG, "lab", started_ns=40, ended_ns=80)
RANK = Placement("n1", 42, 5, "n1.lab", Source.ENVIRONMENT, "lab", "7", "0", rank=0, started_ns=21, ended_ns=49)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Two nodes sampled at 0, 10, ... 90 ns, with two processors, GPUs and processes each."""
    with Store.open(tmp_path / "store") as opened:
        opened.lake.append("cpu", to_table(CPU, rows(("cpu0", "cpu1"), user_seconds_total=7)))
        # pid 42 was used by another process up to 30
        ticks = [4 if device == "42" and time < 30 else 5 for _, device, time in places(("42", "43"))]
        opened.lake.append("process", to_table(PROCESS, rows(("42", "43")) | {"start_ticks": ticks}))
        index = [int(device[-1]) for _, device, _ in places(("GPU-0", "GPU-1"))]
        opened.lake.append("gpu", to_table(GPU, rows(("GPU-0", "GPU-1"), power_watts=300) | {"index": index}))
        opened.lake.append("link", to_table(LINK, {"ts_ns": [1], "up": [1]}))
        yield opened


def places(devices: tuple[str, ...]) -> list[tuple[str, str, int]]:
    return [(node, device, time) for node in ("n1.lab", "n2.lab") for device in devices for time in TIMES]


def rows(devices: tuple[str, ...], **values: int) -> dict[str, list[int | str | None]]:
    every = places(devices)
    keys = {"ts_ns": [time for _, _, time in every], "node": [node for node, _, _ in every]}
    columns = {name: [value] * len(every) for name, value in values.items()}
    return {**keys, "device": [device for _, device, _ in every], **columns}  # type: ignore[dict-item]


def note(store: Store, *facts: Allocation | Placement | Job | Run | Rank) -> None:
    store.jobs.put(*(fact for fact in facts if isinstance(fact, Job)))
    with store.catalog.write() as session:
        for fact in facts:
            match fact:
                case Job():
                    pass
                case Run():
                    session.runs.merge(fact)
                case Rank():
                    session.ranks.merge(fact)
                case _:
                    session.places.merge(fact)


def job_rows(
    store: Store, metric_set: str, job_id: str = "7", system: str | None = None
) -> list[tuple[str, str, int, int]]:
    frame = rows_of_job(store, metric_set, job_id, system=system)
    return list(frame[["node", "device", "ts_ns", "shared_with"]].itertuples(index=False, name=None))


def times(store: Store, metric_set: str = "cpu", job_id: str = "7") -> list[int]:
    return sorted({time for _, _, time, _ in job_rows(store, metric_set, job_id)})


def test_the_rows_of_a_job_are_those_of_its_node_from_its_start_to_before_its_end(store: Store) -> None:
    note(store, MINE, OTHER)
    assert job_rows(store, "cpu") == [
        ("n1.lab", device, time, shared) for device in ("cpu0", "cpu1") for time, shared in ((20, 0), (30, 0), (40, 1))
    ]


def test_values_come_in_base_units(store: Store) -> None:
    note(store, MINE)
    assert list(rows_of_job(store, "cpu", "7")["user_seconds_total"]) == pytest.approx([0.07] * 6)


def test_a_job_on_several_nodes_and_in_overlapping_allocations_has_each_row_once(store: Store) -> None:
    again = replace(MINE, restart_count=1, started_ns=40, ended_ns=70)
    elsewhere = replace(again, node="n2", sampled_as="n2.lab", started_ns=90, ended_ns=None)
    note(store, MINE, again, elsewhere)
    cpu_rows = job_rows(store, "cpu")
    assert len(cpu_rows) == len(set(cpu_rows)) == 2 * (5 + 1)
    assert {node: {time for other, _, time, _ in cpu_rows if other == node} for node in ("n1.lab", "n2.lab")} == {
        "n1.lab": {20, 30, 40, 50, 60},
        "n2.lab": {90},
    }


def test_processes_are_narrowed_to_the_ranks_and_a_pid_used_before_is_another(store: Store) -> None:
    note(store, MINE, RANK)
    assert job_rows(store, "process") == [("n1.lab", "42", 30, 0), ("n1.lab", "42", 40, 0)]


def test_where_no_rank_is_known_the_processes_of_the_whole_node_are_given(store: Store) -> None:
    note(store, MINE)
    assert {device for _, device, _, _ in job_rows(store, "process")} == {"42", "43"}


def test_gpus_are_narrowed_to_the_jobs_own_by_index_or_uuid(store: Store) -> None:
    note(store, MINE, replace(OTHER, gpus=("GPU-0",)))
    assert {device for _, device, _, _ in job_rows(store, "gpu")} == {"GPU-1"}
    assert {device for _, device, _, _ in job_rows(store, "gpu", "8")} == {"GPU-0"}


def test_gpus_of_names_that_no_sample_has_narrow_nothing(store: Store) -> None:
    note(store, replace(MINE, gpus=("MIG-9",)))
    assert {device for _, device, _, _ in job_rows(store, "gpu")} == {"GPU-0", "GPU-1"}


def test_visible_gpus_narrow_by_uuid_and_never_by_an_index_that_counts_from_0_in_every_job(store: Store) -> None:
    note(store, replace(MINE, gpus=()), replace(RANK, gpus=("0",)))
    assert {device for _, device, _, _ in job_rows(store, "gpu")} == {"GPU-0", "GPU-1"}
    note(store, replace(RANK, gpus=("GPU-1",)))
    assert {device for _, device, _, _ in job_rows(store, "gpu")} == {"GPU-1"}


def test_without_an_allocation_the_accounting_tells_nodes_and_times(store: Store) -> None:
    note(store, Job("lab", "7", nodes=("n2.lab",), started_ns=10, ended_ns=30))
    assert job_rows(store, "cpu") == [("n2.lab", device, time, 0) for device in ("cpu0", "cpu1") for time in (10, 20)]


def test_an_allocation_that_was_never_seen_to_end_ends_as_the_accounting_says(store: Store) -> None:
    note(store, replace(MINE, ended_ns=None))
    assert times(store) == [20, 30, 40, 50, 60, 70, 80, 90]
    note(store, Job("elsewhere-named", "7", started_ns=19, ended_ns=40))
    assert times(store) == [20, 30]


def test_an_allocation_that_was_never_seen_to_end_ends_with_the_jobs_next_start(store: Store) -> None:
    note(store, replace(MINE, ended_ns=None), replace(MINE, restart_count=1, started_ns=70, ended_ns=80))
    note(store, replace(MINE, node="n2", sampled_as="n2.lab", restart_count=1, started_ns=40, ended_ns=60))
    assert {time for node, _, time, _ in job_rows(store, "cpu") if node == "n1.lab"} == {20, 30, 70}


def test_another_jobs_allocation_without_an_end_shares_until_the_accounting_ends_it(store: Store) -> None:
    note(store, MINE, replace(OTHER, started_ns=0, ended_ns=None), Job("lab", "8", ended_ns=30))
    assert {(time, shared) for _, _, time, shared in job_rows(store, "cpu")} == {(20, 1), (30, 0), (40, 0)}


def test_two_systems_with_a_job_of_one_id_are_not_mixed(store: Store) -> None:
    note(store, MINE, replace(MINE, system="other", node="n2", sampled_as="n2.lab"))
    with pytest.raises(InvalidInputError, match="'7' is of several systems, lab, other: name one"):
        rows_of_job(store, "cpu", "7")
    assert {node for node, _, _, _ in job_rows(store, "cpu", system="other")} == {"n2.lab"}


def test_what_is_not_there_is_not_found(store: Store) -> None:
    with pytest.raises(NotFoundError, match="job '7'"):
        rows_of_job(store, "cpu", "7")
    note(store, MINE)
    with pytest.raises(NotFoundError, match="set 'weather' holds no rows: expected one of"):
        rows_of_job(store, "weather", "7")
    with pytest.raises(NotFoundError, match="run 'r1'"):
        rows_of_run(store, "cpu", "r1")
    with pytest.raises(InvalidInputError, match="link: its rows name no node"):
        rows_of_job(store, "link", "7")


def test_a_job_that_has_not_started_has_no_rows(store: Store) -> None:
    note(store, Job("lab", "7", nodes=("n1.lab",)))
    assert job_rows(store, "cpu") == []


RUN = Run("r1", "toy", "lab", RunState.COMPLETED, job_id="7", nodes=("n1",), started_ns=20, ended_ns=40)


def test_the_rows_of_a_run_are_those_of_its_own_time_and_of_its_ranks(store: Store) -> None:
    note(store, MINE, OTHER, RUN, replace(RANK, run_id="r1", started_ns=20), Rank("r1", 1, "n2.lab", 43, 20))
    assert list(rows_of_run(store, "cpu", "r1")["ts_ns"].unique()) == [20, 30]
    process_rows = rows_of_run(store, "process", "r1")[["node", "device", "ts_ns"]]
    assert list(process_rows.itertuples(index=False, name=None)) == [
        ("n1.lab", "42", 30),
        ("n2.lab", "43", 20),
        ("n2.lab", "43", 30),
    ]


def test_the_run_of_no_job_shares_its_node_with_every_job(store: Store) -> None:
    note(store, MINE, OTHER, replace(RUN, job_id=None, nodes=("n1.lab",), ended_ns=60))
    frame = rows_of_run(store, "cpu", "r1")
    assert dict(zip(frame["ts_ns"], frame["shared_with"], strict=True)) == {20: 1, 30: 1, 40: 2, 50: 1}


def test_a_lost_run_ends_with_its_last_process(store: Store) -> None:
    note(store, replace(RUN, state=RunState.LOST, ended_ns=None), replace(RANK, run_id="r1"))
    assert list(rows_of_run(store, "cpu", "r1")["ts_ns"].unique()) == [20, 30, 40]


def test_steps_are_joined_by_their_run(store: Store) -> None:
    steps = {"ts_ns": [25, 26, 27], "run_id": ["r1", "r2", "r1"], "rank": [0, 0, 0], "step": [0, 0, 1]}
    store.lake.append("steps", to_table(STEP, steps))
    note(store, MINE, replace(RUN, nodes=()))
    assert list(rows_of_run(store, "step", "r1")["ts_ns"]) == list(rows_of_job(store, "step", "7")["ts_ns"]) == [25, 27]
