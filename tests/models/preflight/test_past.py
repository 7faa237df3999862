"""Checks of the past against what was known before each of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.models.preflight.stored_checks import BEGAN, DAY_NS, store_checks

from crosswind.data.store.store import Store
from crosswind.models.preflight.past import checked_systems, past_checks
from crosswind.models.preflight.references import Basis


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "home") as opened:
        yield opened


def test_a_node_is_blamed_in_the_check_in_which_it_was_slow_only(store: Store) -> None:
    store_checks(store, checks=4, nodes=8, slow={3: "n5"})
    newest, *older = past_checks(store, "lab")
    assert (newest.check_id, newest.job_id, newest.at_ns) == ("C3", "j3", BEGAN + 3 * DAY_NS)
    assert newest.nodes == tuple(f"n{number}" for number in range(8))
    assert newest.verdict.excluded == ("n5",)
    assert [check.verdict.excluded for check in older] == [(), (), ()]


def test_a_check_is_not_compared_with_what_came_after_it(store: Store) -> None:
    store_checks(store, checks=2, nodes=3, slow={})
    second, first = past_checks(store, "lab")
    assert {finding.basis for finding in first.verdict.findings} == {Basis.NOBODY}
    assert {finding.evidence for finding in second.verdict.findings} == {0}  # three earlier nodes are too few
    assert "nothing says what is usual of gemm" in first.verdict.notes[0]


def test_the_newest_are_told_and_other_systems_left_out(store: Store) -> None:
    assert (past_checks(store, "lab"), checked_systems(store)) == ((), ())
    store_checks(store, checks=5, nodes=2, slow={})
    store_checks(store, checks=1, nodes=2, slow={}, system="far", first=9)
    assert [check.check_id for check in past_checks(store, "lab", checks=2)] == ["C4", "C3"]
    assert checked_systems(store) == ("far", "lab")
    assert past_checks(store, "nowhere") == ()


def test_both_ends_of_a_link_are_nodes_of_the_check(store: Store) -> None:
    store_checks(store, checks=1, nodes=2, slow={}, links=True)
    [check] = past_checks(store, "lab")
    assert check.nodes == ("n0", "n1")
    assert {(finding.measure, finding.peer) for finding in check.verdict.findings} == {
        ("gemm", None),
        ("bandwidth", "n1"),
    }
