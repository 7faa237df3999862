"""Landings: how far runs are, and which checks were measured."""

import pyarrow as pa

from crosswind.data.lake.landings import landings_of
from crosswind.data.schema.landing import Landing


def steps(rows: list[tuple[str | None, int]]) -> pa.Table:
    run_ids, numbers = zip(*rows, strict=True)
    return pa.table({"ts_ns": list(range(len(rows))), "run_id": run_ids, "step": numbers})


def test_the_highest_step_of_a_run_is_how_far_it_is() -> None:
    [landing] = landings_of([steps([("a", 3), ("a", 7), ("a", 5)]), steps([("a", 6)])])
    assert landing == Landing(0, 2, run_ids=frozenset({"a"}), steps={"a": 7})


def test_of_several_runs_each_has_its_own() -> None:
    [landing] = landings_of([steps([("a", 3), ("b", 7), (None, 9), ("a", 5)])])
    assert landing.steps == {"a": 5, "b": 7}


def test_rows_of_a_run_that_are_of_no_step_say_nothing_of_how_far_it_is() -> None:
    [landing] = landings_of([pa.table({"ts_ns": [1], "run_id": ["a"]})])
    assert landing.steps == {}


def test_checks_are_named_with_their_system() -> None:
    table = pa.table({"ts_ns": [1, 2], "check_id": ["c1", "c1"], "node": ["n1", "n2"], "system": ["lab", "lab"]})
    [landing] = landings_of([table])
    assert (landing.checks, landing.system, landing.nodes) == (frozenset({"c1"}), "lab", frozenset({"n1", "n2"}))
