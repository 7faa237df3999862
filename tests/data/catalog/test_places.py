import threading
import time
from dataclasses import replace
from itertools import permutations

import pytest

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.schema.occupancy import Allocation, Placement, Source, merge_places

BEGUN = Allocation("7", "n1", "n1.lab", Source.PROLOG, "lab", uid=1000, started_ns=100, gpus=("0", "1"), cpus=8)
ENDED = Allocation("7", "n1", "n1.lab", Source.PROLOG, "lab", ended_ns=900)
SEEN = Allocation(
    "7", "n1", "n1.lab", Source.ENVIRONMENT, "lab", array_id="5_2", uid=1000, started_ns=130, ended_ns=870
)
WHOLE = replace(BEGUN, ended_ns=900, array_id="5_2")

FOUND = Placement("n1", 42, 5000, "n1.lab", Source.ENVIRONMENT, "lab", "7", "0", rank=3, local_rank=1, world_size=4)
ANNOUNCED = Placement("n1", 42, 5000, "n1.lab", Source.PROBE, "lab", run_id="01RUN", rank=3, started_ns=131)
GONE = replace(FOUND, ended_ns=860, gpus=("GPU-1",))
RANK = replace(GONE, source=Source.PROBE, run_id="01RUN", started_ns=131)


@pytest.mark.parametrize("order", list(permutations([BEGUN, ENDED, SEEN])))
def test_an_allocation_is_the_same_in_whatever_order_it_is_recorded(order: tuple[Allocation, ...]) -> None:
    merged = order[0]
    for allocation in order[1:]:
        merged = merge_places(merged, allocation)
    assert merged == WHOLE


@pytest.mark.parametrize("order", list(permutations([FOUND, ANNOUNCED, GONE])))
def test_a_rank_seen_by_probe_and_environment_is_one_placement(order: tuple[Placement, ...], catalog: Catalog) -> None:
    with catalog.write() as session:
        for placement in (*order, order[0]):
            session.places.merge(placement)
        assert session.places.placements_of_job("7") == session.places.placements_of_run("01RUN") == [RANK]


def test_an_end_may_come_before_the_start_and_in_another_session(catalog: Catalog) -> None:
    for allocation in (ENDED, SEEN, BEGUN, BEGUN):
        with catalog.write() as session:
            session.places.merge(allocation)
    with catalog.read() as session:
        assert session.places.allocations("7") == [WHOLE]


def test_a_requeued_job_has_an_allocation_for_each_start(catalog: Catalog) -> None:
    again = replace(BEGUN, restart_count=1, started_ns=2000)
    with catalog.write() as session:
        for allocation in (again, ENDED, BEGUN):
            session.places.merge(allocation)
        assert session.places.allocations("7") == [replace(BEGUN, ended_ns=900), again]


def test_jobs_of_two_systems_are_distinguished(catalog: Catalog) -> None:
    other = replace(BEGUN, system="other")
    with catalog.write() as session:
        for allocation in (BEGUN, other):
            session.places.merge(allocation)
        session.places.merge(FOUND)
        session.places.merge(replace(FOUND, system="other"))
        assert session.places.allocations("7") == [BEGUN, other]
        assert session.places.allocations("7", system="other") == [other]
        assert session.places.placements_of_job("7", system="lab") == [FOUND]
        assert session.places.allocations("8") == []


def test_who_was_on_a_node_is_found_by_half_open_intervals(catalog: Catalog) -> None:
    spans: dict[str, tuple[int | None, int | None]] = {
        "before": (0, 100),
        "over": (50, 101),
        "after": (200, 300),
        "still": (199, None),
        "unknown": (None, 101),
    }
    with catalog.write() as session:
        for job_id, (begin, end) in spans.items():
            session.places.merge(replace(BEGUN, job_id=job_id, started_ns=begin, ended_ns=end))
        session.places.merge(replace(BEGUN, job_id="elsewhere", sampled_as="n2", node="n2"))
        allocations = session.places.allocations_on(["n1.lab"], 100, 200)
        assert {place.job_id for place in allocations} == {"over", "still", "unknown"}
        many = [f"m{number}" for number in range(1200)]
        assert {place.job_id for place in session.places.allocations_on(["n2", *many], 0, 10**18)} == {"elsewhere"}


def test_two_servers_that_learn_of_a_place_at_once_lose_nothing(catalog: Catalog) -> None:
    has_merged = threading.Event()

    def end() -> None:
        with catalog.write() as session:
            session.places.merge(ENDED)
            session.places.merge(GONE)
            has_merged.set()
            time.sleep(0.3)  # the other one comes meanwhile

    thread = threading.Thread(target=end)
    thread.start()
    assert has_merged.wait(10)
    with catalog.write() as session:
        session.places.merge(BEGUN)
        session.places.merge(ANNOUNCED)
    thread.join()
    with catalog.read() as session:
        assert session.places.allocations("7") == [replace(BEGUN, ended_ns=900)]
        assert session.places.placements_of_run("01RUN") == [RANK]
