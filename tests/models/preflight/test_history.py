"""Results of checks through spool and store, back to what a comparison takes."""

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.checks import PREFLIGHT, Measured
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import load_spool
from crosswind.ingest.preflight.record import Occasion, record
from crosswind.models.preflight.history import VALUES_EACH, earlier_checks

BEGAN = 1_800_000_000_000_000_000
GEMM = Measured("n1", "gemm", 100.0, "cpu", method="torch", hardware="Fast 9000")
LINK = Measured("n1", "bandwidth", 1e9, peer="n2", method="gloo")
MESSAGE = Measured("n1", "message", 1e-5, peer="n2", size_bytes=8, method="gloo")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "home") as opened:
        yield opened


def stored(store: Store, number: int, *measured: Measured, system: str = "lab") -> int:
    spool = store.home / "spool"
    count = record(spool, Occasion(f"CHECK{number}", BEGAN + number, system, "7"), measured)
    loaded = load_spool(store, spool)
    assert loaded.problems == []
    return count


def test_before_the_first_check_there_is_nothing(store: Store) -> None:
    assert earlier_checks(store.lake, "lab") == ()


def test_what_was_recorded_comes_back_newest_first_without_what_no_node_is_held_to(store: Store) -> None:
    assert stored(store, 1, GEMM, LINK, MESSAGE) == 3
    assert stored(store, 2, GEMM, LINK) == 2
    link, gemm = sorted(earlier_checks(store.lake, "lab"), key=lambda earlier: earlier.measure)
    assert (gemm.node, gemm.device, gemm.peer, gemm.values) == ("n1", "cpu", "", (100.0, 100.0))
    assert gemm.at_ns == (BEGAN + 2, BEGAN + 1)
    assert (gemm.method, gemm.hardware) == ("torch", "Fast 9000")
    assert (link.node, link.peer, link.device, link.values) == ("n1", "n2", "", (1e9, 1e9))
    [row] = store.lake.frame("select * from preflight where measure = 'message'").to_dict("records")
    assert (row["size_bytes"], row["check_id"], row["job_id"], row["value"]) == (8, "CHECK1", "7", 1e-5)


def test_another_system_is_another_fleet(store: Store) -> None:
    stored(store, 1, GEMM, system="elsewhere")
    assert earlier_checks(store.lake, "lab") == ()
    assert len(earlier_checks(store.lake, "elsewhere")) == 1


def test_only_the_newest_of_a_node_are_looked_at(store: Store) -> None:
    many = range(VALUES_EACH + 5)
    columns: dict[str, list[int | float | str]] = {
        "ts_ns": [BEGAN + number for number in many],
        "value": [float(number + 1) for number in many],
        **{name: [word] * len(many) for name, word in (("node", "n1"), ("measure", "gemm"), ("system", "lab"))},
        **{name: [""] * len(many) for name in ("method", "hardware")},
    }
    store.lake.append("many", to_table(PREFLIGHT, columns))
    [earlier] = earlier_checks(store.lake, "lab")
    assert len(earlier.values) == VALUES_EACH
    assert earlier.values[0] == len(many)


def test_what_is_no_number_is_not_recorded(store: Store) -> None:
    odd = [Measured("n1", "gemm", value, "cpu") for value in (math.nan, math.inf, -math.inf)]
    assert stored(store, 1, *odd, GEMM) == 1
    assert record(store.home / "spool", Occasion("C", BEGAN, "lab", None), odd) == 0
    assert list((store.home / "spool").glob("*.segment")) == []
