"""Columns of local times are what a clock makes of each."""

import random
from datetime import datetime, timedelta

import pyarrow as pa
import pytest

from crosswind.ingest.readers.clock import Clock, zone_named
from crosswind.ingest.readers.slurm.local_times import local_seconds


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"])
def test_a_column_has_what_a_clock_says_and_leaves_changes_of_clocks_to_it(name: str) -> None:
    chance, zone = random.Random(3), zone_named(name)
    moments = [datetime(2002, 1, 1) + timedelta(seconds=chance.randrange(30 * 365 * 86_400)) for _ in range(3000)]
    moments += [datetime(2026, month, 1) + timedelta(minutes=7 * n) for month in (3, 4, 10, 11) for n in range(6000)]
    texts = [moment.strftime("%Y-%m-%dT%H:%M:%S") for moment in moments]
    column = local_seconds(pa.array(texts), zone)
    clock = Clock(zone)
    expected = [(clock.nanoseconds("Start", text), clock.ambiguous) for text in texts]
    pairs = [
        (seconds, ns)
        for seconds, (ns, _) in zip(column.values.to_pylist(), expected, strict=True)
        if seconds is not None
    ]
    assert all(seconds * 1_000_000_000 == ns for seconds, ns in pairs)
    assert len(pairs) == len(texts) - int(column.doubtful.sum())
    changes = [place for place in range(1, len(expected)) if expected[place][1] > expected[place - 1][1]]
    assert all(column.doubtful[place] for place in changes)
    assert column.doubtful.sum() <= 100  # some hours of these years


@pytest.mark.parametrize(
    "text",
    ["2026-02-30T00:00:00", "2026-02-03 00:00:00", "2026-01-01T24:00:00", "no time at all, no!", "0000-00-00T00:00:00"],
)
def test_a_column_with_what_is_no_time_is_left_to_the_clock(text: str) -> None:
    assert local_seconds(pa.array(["2026-01-01T00:00:00", text]), zone_named("UTC")).doubtful.all()


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00", "1999-01-01T00:00:00", "9999-12-31T23:59:59"])
def test_times_out_of_range_are_left_to_the_clock(text: str) -> None:
    assert local_seconds(pa.array(["2026-01-01T00:00:00", text]), zone_named("UTC")).doubtful.tolist() == [False, True]
