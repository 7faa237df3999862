import threading
import time
from dataclasses import replace

import pytest

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.schema.run import Rank, Run, RunState

RUN = Run("r1", "toy", "lab", RunState.RUNNING)


@pytest.mark.parametrize("is_known", [False, True])
def test_two_servers_that_learn_of_a_run_at_once_lose_nothing(catalog: Catalog, is_known: bool) -> None:
    if is_known:
        with catalog.write() as session:
            session.runs.merge(RUN)
    has_merged = threading.Event()

    def ends() -> None:
        with catalog.write() as session:
            session.runs.merge(replace(RUN, state=RunState.COMPLETED, ended_ns=9, tags={"a": "1"}))
            session.ranks.merge(Rank("r1", 0, "n1", 7, 1, ended_ns=9))
            has_merged.set()
            time.sleep(0.3)  # the other one comes meanwhile

    thread = threading.Thread(target=ends)
    thread.start()
    assert has_merged.wait(10)
    with catalog.write() as session:
        session.runs.merge(replace(RUN, started_ns=1, tags={"b": "2"}))
        session.ranks.merge(Rank("r1", 0, "n1", 7, 1, clock_offset_ns=5))
    thread.join()
    with catalog.read() as session:
        run, [rank] = session.runs.get("r1"), session.ranks.of("r1")
    assert (run.state, run.started_ns, run.ended_ns, run.tags) == (RunState.COMPLETED, 1, 9, {"a": "1", "b": "2"})
    assert (rank.ended_ns, rank.clock_offset_ns) == (9, 5)
