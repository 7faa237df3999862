"""Limits on the times, days and files of a batch."""

from pathlib import Path

import pytest
from tests.api.segments import HEAT, segment

from crosswind.data.lake.lake import to_table
from crosswind.data.lake.parts import DAY_NS
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.store.store import Store
from crosswind.ingest.load.extent import DAYS_MAX, believed, check_extent
from crosswind.ingest.load.receive import Fate, receive
from crosswind.ingest.spool.segment_reader import Unpacked
from crosswind.ingest.spool.spool import SpoolWriter, batch_id, sealed_segments

NOW = 1_767_323_045_000_000_006


def test_rows_at_times_that_nobody_can_have_measured_are_left_out_and_said() -> None:
    times = [-1, 0, NOW, NOW + DAY_NS, NOW + DAY_NS + 1, 2**63 - 1]
    table = to_table(HEAT, {"ts_ns": times})
    [kept], [said] = believed([table], NOW)
    assert kept["ts_ns"].to_pylist() == [0, NOW, NOW + DAY_NS]
    assert said == "rows of heat: 3 before 1970 or more than a day ahead of this clock are left out"
    assert believed([kept], NOW) == ([kept], [])


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


def test_what_comes_over_the_network_is_checked_and_leaves_no_file_behind(tmp_path: Path) -> None:
    with SpoolWriter(tmp_path / "spool", "agent.n1") as writer:
        writer.append_rows(HEAT, {"ts_ns": [day * DAY_NS for day in range(4001)]})
    [path] = sealed_segments(tmp_path / "spool")
    with Store.open(tmp_path / "home") as store:
        with pytest.raises(InvalidInputError, match="batch of 4001 days: expected at most 40"):
            receive(store, Unpacked(path.name, path.read_bytes()), batch_id(path), rejected_bytes=0)
        assert list(store.home.glob("lake/**/*.parquet*")) == []
        late = segment(tmp_path / "late", first=2**62)
        received = receive(store, Unpacked(late.name, late.read_bytes()), batch_id(late), rejected_bytes=1 << 20)
        assert (received.fate, received.rows) == (Fate.PARTIAL, 0)
        assert "rows of heat: 3 before 1970 or more than a day ahead" in received.problems[0]
