"""Ranks that waited, and those that they waited for."""

from collections.abc import Callable, Sequence

import pandas as pd
import pytest

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.answers.explanations import Wait
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.steps import COLLECTIVE, STEP
from crosswind.data.store.features import WARM_UP_STEPS
from crosswind.data.store.store import Store
from crosswind.models.explain.victims import victims_of
from crosswind.models.stragglers.stages import stages_in

Rows = Callable[..., pd.DataFrame]
NS = 10**9


@pytest.fixture
def keep(store: Store, step_rows: Rows) -> Callable[..., None]:
    """Stores a run of these local seconds, one row a step."""

    def put(
        local: Sequence[Sequence[float]], *, without: tuple[int, int] | None = None, groups: Sequence[str] = ()
    ) -> None:
        with store.catalog.write() as session:
            session.runs.merge(Run("r", "w", "s", RunState.COMPLETED, len(local[0])))
        rows = step_rows([[0.0] * len(local[0])] * WARM_UP_STEPS + [list(step) for step in local], fabric=0.004)
        if without:
            rows = rows[~((rows["rank"] == without[0]) & (rows["step"] == without[1]))]
        raw = {
            name: (rows[name] * (NS if name.endswith("_seconds") else 1)).round().astype(int).tolist()
            for name in rows
            if name != "run_id"
        }
        raw |= {"run_id": ["r"] * len(rows)}
        store.lake.append("steps", to_table(STEP, raw))
        if groups:
            count = len(groups)
            keys = {"run_id": ["r"] * count, "rank": [0] * count, "step": [5] * count, "ts_ns": [1] * count}
            store.lake.append("groups", to_table(COLLECTIVE, keys | {"sequence": list(range(count)), "group": groups}))

    return put


def test_what_others_wait_beyond_the_last_rank_is_its_doing(store: Store, keep: Callable[..., None]) -> None:
    keep([[0.010, 0.030, 0.020]] * 4 + [[0.050, 0.030, 0.050]])
    waits = victims_of(store, "r")
    assert waits.steps == 5
    assert [(edge.culprit, edge.victim, edge.steps) for edge in waits.edges] == [(1, 0, 4), (1, 2, 4), (0, 1, 1)]
    assert [edge.seconds for edge in waits.edges] == pytest.approx([0.080, 0.040, 0.020])
    assert waits.lost_seconds == pytest.approx(0.140)  # the fabric's 4 ms are nobody's
    assert (waits.stages, waits.balance_ratio) == ((), None)


def test_a_step_that_a_rank_did_not_record_counts_for_nobody(store: Store, keep: Callable[..., None]) -> None:
    keep([[0.010, 0.030]] * 4, without=(1, WARM_UP_STEPS + 2))
    waits = victims_of(store, "r")
    assert waits.steps == 3
    assert waits.edges == (Wait(1, 0, pytest.approx(0.060), 3),)  # type: ignore[arg-type]


def test_a_run_of_one_rank_or_without_steps_or_unknown(store: Store, keep: Callable[..., None]) -> None:
    with pytest.raises(NotFoundError, match="r"):
        victims_of(store, "r")
    with store.catalog.write() as session:
        session.runs.merge(Run("r", "w", "s", RunState.COMPLETED))
    assert (victims_of(store, "r").steps, victims_of(store, "r").edges) == (0, ())
    keep([[0.010]] * 4)
    assert (victims_of(store, "r").steps, victims_of(store, "r").edges) == (4, ())


def test_of_many_pairs_the_largest_are_listed_and_all_are_summed(store: Store, keep: Callable[..., None]) -> None:
    keep([[0.001 * rank for rank in range(150)]] * 2)
    waits = victims_of(store, "r")
    assert len(waits.edges) == 100
    assert waits.edges[0] == Wait(149, 0, pytest.approx(0.298), 2)  # type: ignore[arg-type]
    assert waits.lost_seconds == pytest.approx(2 * sum(0.001 * rank for rank in range(150)))


def test_stages_are_compared_among_themselves(store: Store, keep: Callable[..., None]) -> None:
    groups = ["pipeline stage0>stage1 0>2", "pipeline stage0>stage1 1>3", "pipeline stage1>stage0 2>0", "world"]
    keep([[0.010, 0.012, 0.031, 0.029]] * 6, groups=groups)
    waits = victims_of(store, "r")
    assert [(stage.name, stage.ranks) for stage in waits.stages] == [("stage0", (0, 1)), ("stage1", (2, 3))]
    assert [stage.own_seconds for stage in waits.stages] == pytest.approx([0.011, 0.030])
    assert [stage.waited_seconds for stage in waits.stages] == pytest.approx([0.024, 0.005])
    assert waits.balance_ratio == pytest.approx(20.5 / 30)


def test_where_a_ranks_stage_is_unknown_none_are_compared(store: Store, keep: Callable[..., None]) -> None:
    keep([[0.010, 0.012, 0.031]] * 6, groups=["pipeline stage0>stage1 0>2"])
    assert victims_of(store, "r").stages == ()
    assert stages_in(["pipeline stage0>stage1 0>2", "world", "pipeline 0>1"]) == {0: "stage0", 2: "stage1"}
