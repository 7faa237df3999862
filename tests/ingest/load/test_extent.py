"""Limits on the times, days and files of a batch."""

from pathlib import Path

import pytest
from tests.api.segments import HEAT, segment

from crosswind.data.lake.lake import to_table
from crosswind.data.lake.parts import DAY_NS
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.store.store import Store
from crosswind.ingest.load.extent import DAYS_MAX, believed, check_extent
from crosswind.ingest.load.load import load_spool
from crosswind.ingest.spool.spool import SpoolWriter

NOW = 1_767_323_045_000_000_006


def test_rows_at_times_that_nobody_can_have_measured_are_left_out_and_said() -> None:
    times = [-1, 0, NOW, NOW + DAY_NS, NOW + DAY_NS + 1, 2**63 - 1]
    kept, said = believed(to_table(HEAT, {"ts_ns": times}), NOW)
    assert kept["ts_ns"].to_pylist() == [0, NOW, NOW + DAY_NS]
    assert said == "rows of heat: 3 before 1970 or more than a day ahead of this clock are left out"
    assert believed(kept, NOW) == (kept, None)


def test_a_batch_of_many_days_is_refused_and_leaves_no_file() -> None:
    days = [day * DAY_NS for day in range(DAYS_MAX + 1)]
    check_extent([to_table(HEAT, {"ts_ns": days[:-1]})])
    with pytest.raises(InvalidInputError, match="batch of 41 days: expected at most 40"):
        check_extent([to_table(HEAT, {"ts_ns": days})])
    tables = [to_table(HEAT, {"ts_ns": days[:-1]})] * 11
    with pytest.raises(InvalidInputError, match="batch of 440 files, one for each set and day: expected at most 400"):
        check_extent(tables)
    with pytest.raises(InvalidInputError, match="batch of 201 sets: expected at most 200"):
        check_extent([to_table(HEAT, {"ts_ns": [1]})] * 201)


def test_a_spool_keeps_aside_what_spans_too_much(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    with SpoolWriter(spool, "agent.n1") as writer:
        writer.append_rows(HEAT, {"ts_ns": [day * DAY_NS for day in range(4001)]})
    segment(spool)
    with Store.open(tmp_path / "home") as store:
        loaded = load_spool(store, spool)
        assert (loaded.batches, loaded.rows) == (1, 3)
        assert len(list(store.home.glob("lake/set=*/date=*/*"))) == 1
    assert "batch of 4001 days: expected at most 40" in loaded.problems[0]
    assert len(list(spool.glob("*.rejected"))) == 1
