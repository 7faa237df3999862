import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy.exc import IntegrityError

from crosswind.data.catalog import rows, tables
from crosswind.data.catalog.catalog import Catalog
from crosswind.data.schema.errors import ConflictError, InvalidInputError, NotFoundError
from crosswind.data.schema.model import Evidence, Learned, ModelRecord, ModelState

LEARNED = Learned(100, 10, 90, ("batch", "nodes"), {"system": "lab"})
EVIDENCE = Evidence(LEARNED, 20, 0.02, {"last": 0.03, "ewma": 0.025}, ((0.05, 0.1), (0.95, 0.9)), (0.01, 0.03))
FIRST = ModelRecord("step-time", 1, ModelState.CANDIDATE, 100, EVIDENCE, None, "0.1.0", "step-time/1.cwm", "ab" * 32)


def put(catalog: Catalog, count: int) -> None:
    with catalog.write() as session:
        for version in range(1, count + 1):
            assert session.models.next_version("step-time") == version
            session.models.add(replace(FIRST, version=version, digest=f"{version:064x}"))


def states(catalog: Catalog) -> list[str]:
    with catalog.read() as session:
        return [record.state.value for record in session.models.versions("step-time")[::-1]]


def in_threads(*works: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)


def test_a_version_comes_back_as_it_was_stored(catalog: Catalog) -> None:
    with catalog.write() as session:
        session.models.add(FIRST)
        session.models.add(replace(FIRST, name="other", version=3))
    with catalog.read() as session:
        assert session.models.get("step-time", 1) == FIRST
        assert [(version.name, version.version) for version in session.models.all()] == [("other", 3), ("step-time", 1)]
        assert session.models.newest("step-time") == FIRST
        assert session.models.promoted("step-time") is None
        assert session.models.newest("nobody") is None


def test_what_is_not_there_is_named(catalog: Catalog) -> None:
    put(catalog, 1)
    with catalog.read() as session:
        with pytest.raises(NotFoundError, match="version 2 of model 'step-time'"):
            session.models.get("step-time", 2)
        with pytest.raises(NotFoundError, match="model 'nobody'"):
            session.models.versions("nobody")


def test_promoting_retires_the_one_before_and_tells_why(catalog: Catalog) -> None:
    put(catalog, 2)
    with catalog.write() as session:
        session.models.promote("step-time", 1, at_ns=5, reason="first")
        session.models.promote("step-time", 2, at_ns=6, reason="better")
    with catalog.read() as session:
        first, second = (session.models.get("step-time", version) for version in (1, 2))
        assert session.models.promoted("step-time") == second
    assert (first.state, first.promoted_ns, first.note) == (ModelState.RETIRED, 5, "version 2 was promoted")
    assert (second.state, second.promoted_ns, second.note) == (ModelState.PROMOTED, 6, "better")
    assert [(change.at_ns, change.state.value) for change in first.history] == [(5, "promoted"), (6, "retired")]


def test_promoting_the_promoted_one_changes_nothing(catalog: Catalog) -> None:
    put(catalog, 1)
    with catalog.write() as session:
        once = session.models.promote("step-time", 1, at_ns=5, reason="first")
        assert session.models.promote("step-time", 1, at_ns=9, reason="again") == once


def test_rolling_back_goes_one_promotion_back_each_time_and_never_forward(catalog: Catalog) -> None:
    put(catalog, 3)
    with catalog.write() as session:
        for version in (2, 1, 3):
            session.models.promote("step-time", version, at_ns=10 + version, reason="x")
        assert session.models.rollback("step-time", at_ns=20, reason="slow").version == 2  # promoted at 12, 1 at 11
        assert session.models.rollback("step-time", at_ns=21, reason="slow").version == 1
        with pytest.raises(ConflictError, match="no version that was promoted before"):
            session.models.rollback("step-time", at_ns=22, reason="slow")
    assert states(catalog) == ["promoted", "demoted", "demoted"]


def test_rolling_back_again_by_mistake_changes_nothing(catalog: Catalog) -> None:
    put(catalog, 3)
    with catalog.write() as session:
        for version in (1, 2, 3):
            session.models.promote("step-time", version, at_ns=version, reason="x")
        assert session.models.rollback("step-time", at_ns=9, reason="x", version=3).version == 2
        with pytest.raises(ConflictError, match="version 3 of model 'step-time' is not promoted: version 2 is"):
            session.models.rollback("step-time", at_ns=9, reason="x", version=3)
        with pytest.raises(NotFoundError, match="model 'nobody'"):
            session.models.rollback("nobody", at_ns=9, reason="x")
    assert states(catalog) == ["retired", "promoted", "demoted"]


def test_demoting_falls_back_or_leaves_none(catalog: Catalog) -> None:
    put(catalog, 2)
    with catalog.write() as session:
        session.models.promote("step-time", 1, at_ns=5, reason="x")
        session.models.promote("step-time", 2, at_ns=6, reason="x")
        back = session.models.demote("step-time", 2, at_ns=7, reason="drift")
        assert back is not None
        assert (back.version, back.state, back.note) == (1, ModelState.PROMOTED, "version 2 was taken back: drift")
        assert session.models.demote("step-time", 1, at_ns=8, reason="drift") is None
        assert session.models.promoted("step-time") is None
        with pytest.raises(ConflictError, match="is not promoted: none is"):
            session.models.demote("step-time", 1, at_ns=9, reason="drift")


def test_the_database_itself_takes_one_promoted_version_a_name(catalog: Catalog) -> None:
    put(catalog, 2)
    with catalog.write() as session:
        session.models.promote("step-time", 1, at_ns=5, reason="x")
    second = {"name": "step-time", "version": 2}
    with pytest.raises(IntegrityError), catalog.write() as session:
        rows.change(session.models._connection, tables.models, second, state=ModelState.PROMOTED)
    with catalog.write() as session:
        session.models.add(replace(FIRST, name="other"))
        session.models.promote("other", 1, at_ns=5, reason="x")


def test_of_many_who_promote_at_once_one_wins_and_nobody_fails(catalog: Catalog) -> None:
    put(catalog, 6)
    failures: list[BaseException] = []

    def promote(version: int) -> Callable[[], None]:
        def work() -> None:
            try:
                for turn in range(5):
                    with catalog.write() as session:
                        session.models.promote("step-time", version, at_ns=turn, reason=f"by {version}")
            except BaseException as error:  # noqa: BLE001 - a thread's failure would go unseen
                failures.append(error)

        return work

    in_threads(*(promote(version) for version in range(1, 7)))
    assert failures == []
    assert sorted(states(catalog)) == ["promoted"] + ["retired"] * 5


def test_two_who_register_at_once_get_two_versions(catalog: Catalog) -> None:
    def register() -> None:
        with catalog.write() as session:
            version = session.models.next_version("step-time")
            session.models.add(replace(FIRST, version=version))

    in_threads(*[register] * 6)
    with catalog.read() as session:
        assert [record.version for record in session.models.versions("step-time")] == [6, 5, 4, 3, 2, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": float("nan")}, "loss is nan"),
        ({"loss": -1.0}, "loss is -1.0"),
        ({"baselines": {"last": float("inf")}}, "baselines.last is inf"),
        ({"row_losses": (0.1, float("nan"))}, r"row_losses\[1\] is nan"),
        ({"row_losses": (0.1,) * 501}, "501 row losses"),
        ({"coverage": ((1.5, 0.5),)}, "coverage at level 1.5"),
        ({"coverage": ((0.5, 1.5),)}, "coverage at level 0.5 is 1.5"),
    ],
)
def test_evidence_that_is_none_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        replace(EVIDENCE, **change)  # type: ignore[arg-type]


def test_a_window_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="ends at 5, before it begins at 10"):
        replace(LEARNED, to_ns=5)
    with pytest.raises(InvalidInputError, match="rows is 0"):
        replace(LEARNED, rows=0)
