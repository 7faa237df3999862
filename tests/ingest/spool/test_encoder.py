import json
from typing import Any

import pytest

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.metric import NODE_KEYS, Column, MetricSet
from crosswind.ingest.spool.encoder import SweepEncoder
from crosswind.ingest.spool.segment import HEADER, SweepRows

OIL = MetricSet("oil", "pumps", (*NODE_KEYS, Column("turns", "count"), Column("state", "word", dtype="string")))


def rows_of(encoder: SweepEncoder, *rows: Any, metric_set: MetricSet = OIL) -> list[Any]:
    payload = encoder.frame(SweepRows(metric_set, 1, 2, "n1", None, rows))[HEADER.size :]
    frame = json.loads(payload)
    assert list(frame) == ["kind", "set", "ts_ns", "node", "boot_id", "mono_ns", "rows"]
    assert (frame["kind"], frame["set"], frame["ts_ns"], frame["mono_ns"]) == ("samples", "oil", 1, 2)
    return list(frame["rows"])


def test_a_row_that_stays_the_same_object_is_written_in_every_sweep() -> None:
    encoder, still = SweepEncoder(), ("a", 1, 'left "]["')
    for turn in range(4):
        assert sorted(rows_of(encoder, still, ("b", turn, None))) == [["a", 1, 'left "]["'], ["b", turn, None]]


def test_a_sweep_of_unchanged_rows_alone_is_whole() -> None:
    encoder, still = SweepEncoder(), (("a", 1, None), ("b", 2, None))
    assert [rows_of(encoder, *still) for _ in range(3)] == [[["a", 1, None], ["b", 2, None]]] * 3


def test_a_row_that_went_and_one_made_anew_in_its_place_are_not_mixed_up() -> None:
    encoder = SweepEncoder()
    for turn in range(200):  # an object that ends leaves its identity to the next
        assert rows_of(encoder, ("a", turn, None)) == [["a", turn, None]]


def test_a_list_that_changes_under_our_hands_is_written_as_it_is_now() -> None:
    encoder, row = SweepEncoder(), ["a", 1, None]
    assert rows_of(encoder, row) == [["a", 1, None]]
    row[1] = 2
    assert [rows_of(encoder, row), rows_of(encoder, row)] == [[["a", 2, None]]] * 2


def test_a_row_is_held_against_the_set_again_when_the_set_is_another() -> None:
    encoder, still = SweepEncoder(), ("a", 1, None)
    rows_of(encoder, still)
    other = MetricSet("oil", "pumps", (*NODE_KEYS, Column("turns", "count", dtype="string"), OIL["state"]))
    with pytest.raises(MalformedError, match="column turns"):
        rows_of(encoder, still, metric_set=other)
    assert rows_of(encoder, still) == [["a", 1, None]]


def test_a_row_that_does_not_fit_next_to_one_that_stays_is_refused() -> None:
    encoder, still = SweepEncoder(), ("a", 1, None)
    rows_of(encoder, still)
    with pytest.raises(MalformedError, match="column turns"):
        rows_of(encoder, still, ("b", 2**63, None))
