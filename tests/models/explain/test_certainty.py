"""The cause that is named first, where redraws of its evidence agree and where they do not."""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
import pytest
from tests.models.explain.drawn_segments import segments_from

from crosswind.cli.text.explanation import explanation_text
from crosswind.dashboards.wording import cause_words
from crosswind.data.schema.answers.explanations import UNKNOWN, Verdict
from crosswind.models.explain.causes import BY_NAME
from crosswind.models.explain.certainty import LEAST, certainty, settled
from crosswind.models.explain.cohort.columns import COLUMNS
from crosswind.models.explain.explain import explain
from crosswind.models.explain.significance import Finding
from crosswind.models.explain.split import REPLICATES, UNEXPLAINED, Split
from crosswind.models.explain.verdict import agreed

Rows = Callable[..., pd.DataFrame]


def drawn_split(times_first: Mapping[str, int], **beyond: float) -> Split:
    """A split whose replicates have each name first so many times; beyond: seconds by phase, or what is unexplained."""
    replicates = {name: np.zeros(REPLICATES) for name in (*BY_NAME, UNEXPLAINED, "excess")}
    begin = 0
    for name, times in times_first.items():
        replicates[name][begin : begin + times] = 0.01
        begin += times
    shares = dict.fromkeys((*BY_NAME, UNEXPLAINED), 0.0) | {UNEXPLAINED: beyond.pop(UNEXPLAINED, 0.0)}
    expected = dict.fromkeys(COLUMNS, 0.0)
    return Split(expected | beyond, expected, shares, replicates)


@pytest.mark.parametrize(
    ("times_first", "cause"),
    [
        ({"stall": 400}, "stall"),
        ({"stall": 100, "network": 300}, "stall"),
        ({"stall": 4, "network": 396}, UNKNOWN),
        ({"stall": 79, "network": 20}, UNKNOWN),
        ({"stall": 150, UNEXPLAINED: 160}, UNKNOWN),
        ({"stall": 150, UNEXPLAINED: 140}, "stall"),
        ({}, UNKNOWN),
    ],
)
def test_a_cause_is_first_where_redraws_have_it_first_more_often_than_nothing(
    times_first: dict[str, int], cause: str
) -> None:
    assert settled("stall", drawn_split(times_first)) == cause


def test_certainty_is_the_share_of_redraws_and_never_next_to_nothing() -> None:
    assert certainty("stall", drawn_split({"stall": REPLICATES})) == pytest.approx(REPLICATES / (REPLICATES + 1))
    assert certainty("stall", drawn_split({"stall": 4})) is None


FIRST = Finding("stall", 0.02, 1)
OTHER = Finding("slow_input", 0.01, None)


def test_of_causes_that_contend_the_phase_is_named_and_what_it_may_be() -> None:
    again = drawn_split({"stall": 40, "cpu_contention": 200}, compute=0.03, input=0.01)
    unknown, other = agreed(Verdict.SLOW, [FIRST, OTHER], again)
    assert unknown == Finding(UNKNOWN, 0.03, 1, "compute", ("stall", "cpu_contention"))
    assert other == OTHER


def test_time_in_collectives_is_said_to_be_in_communication() -> None:
    [unknown] = agreed(Verdict.SLOW, [Finding("network", 0.02, None)], drawn_split({"stall": 200}, fabric=0.03))
    assert unknown.phase == "comm"


def test_where_redraws_leave_most_unexplained_what_stood_out_comes_after_that() -> None:
    named = agreed(Verdict.ONE_RANK_DELAYS, [FIRST], drawn_split({"stall": 90, UNEXPLAINED: 200}, unexplained=0.05))
    assert named == [Finding(UNKNOWN, 0.05, 1, "compute"), FIRST]


def test_a_run_that_is_perhaps_slow_has_no_cause_then() -> None:
    assert agreed(Verdict.PERHAPS_SLOW, [OTHER], drawn_split({"stall": 200})) == []


def test_a_lag_that_redraws_leave_unexplained_is_unknown_on_its_rank(step_rows: Rows) -> None:
    """A counter explains slightly more than half of it, but most of that at the ends, which redraws seldom meet."""
    local = 0.05 * np.random.default_rng(1).normal(1.0, 0.02, (64, 2))
    local[:, 1] += 0.2
    rows = step_rows(local.tolist())
    late = rows["rank"] == 1
    at_ends = (rows["step"] < 8) | (rows["step"] >= 60)
    explained = at_ends | ((rows["step"] % 2 == 0) & ~rows["step"].isin([24, 40]))
    rows.loc[late & explained, "run_queue_wait_seconds"] = 0.19
    explanation = explain("r", segments_from(rows), [])
    assert explanation.shares[0].cause == "cpu_contention"
    assert explanation.unexplained is not None
    assert explanation.shares[0].seconds.value > explanation.unexplained.value
    assert cause_words(explanation) == "unknown, on rank 1, in compute"
    assert (explanation.confidence or 0) > LEAST
    assert "CPU contention took" not in explanation_text(explanation)


def test_a_place_without_a_certain_cause_is_said_to_be_one(step_rows: Rows) -> None:
    """Rank 1 is late by one cause after another, a sixth of the steps each."""
    local = 0.05 * np.random.default_rng(1).normal(1.0, 0.001, (64, 2))
    local[:, 1] += 0.2
    rows = step_rows(local.tolist())
    late = rows["rank"] == 1
    for place, phase in enumerate(("input", "checkpoint", "other")):
        here = late & (rows["step"] % 6 == place)
        rows.loc[here, f"{phase}_seconds"] = 0.2
        rows.loc[here, "compute_seconds"] -= 0.2
    for place, column in enumerate(("run_queue_wait_seconds", "cpu_user_seconds"), start=3):
        rows.loc[late & (rows["step"] % 6 == place), column] = 0.2
    explanation = explain("r", segments_from(rows), [])
    assert explanation.culprit_rank == 1
    assert explanation.cause == UNKNOWN
    assert explanation.confidence is None
    assert "sure: of the place alone; redraws of the evidence disagree about the cause" in explanation_text(explanation)
