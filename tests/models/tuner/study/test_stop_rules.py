"""Rules that end trials by what they have reported."""

import numpy as np
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.report import Report
from crosswind.models.tuner.study.stop_rules import Peer, Progress, reason_to_stop


def asked_steps(rule: str, steps: list[int], trial_id: str = "t") -> list[int]:
    """The steps at which the rule looks at other trials, as reports come in one after another."""
    asked: list[int] = []

    def peers_at(step: int) -> list[Peer]:
        asked.append(step)
        return []

    reports: list[Report] = []
    for step in steps:
        reports.append(Report(step, 1.0))
        assert reason_to_stop(rule, Progress(trial_id, tuple(reports), step), peers_at) == ""
    return asked


def test_the_median_looks_at_every_step_and_asha_at_rungs() -> None:
    assert asked_steps("median", [0, 1, 2]) == [0, 1, 2]
    assert asked_steps("asha", list(range(30))) == [1, 3, 9, 27]
    assert asked_steps("asha", [10, 20, 30, 40, 90]) == [10, 30, 90]
    assert asked_steps("none", [0, 1, 2]) == []


def test_hyperband_has_three_brackets_that_begin_later_and_later() -> None:
    firsts = {asked_steps("hyperband", list(range(10)), f"trial-{number}")[0] for number in range(30)}
    assert firsts == {1, 3, 9}
    peers = [Peer(f"trial-{number}", 0.0, True) for number in range(30)]
    own = next(f"own-{n}" for n in range(99) if asked_steps("hyperband", [0, 1], f"own-{n}") == [1])
    reason = reason_to_stop("hyperband", Progress(own, (Report(1, 5.0),), 1), lambda _: peers)
    same = sum(asked_steps("hyperband", [0, 1], peer.trial_id) == [1] for peer in peers)
    assert f"the best third of {same + 1} trials" in reason


def test_the_median_waits_for_five_complete_trials_and_forgives_a_late_rise() -> None:
    done = [Peer(str(value), float(value), True) for value in range(4)]
    running = [Peer("r", 0.0, False)]
    late = Progress("t", (Report(0, 1.0), Report(1, 9.0)), 1)
    assert reason_to_stop(None, late, lambda _: [*done, *running]) == ""
    assert reason_to_stop(None, late, lambda _: [*done, Peer("4", 4.0, True)]) == ""
    behind = Progress("t", (Report(0, 2.5), Report(1, 9.0)), 1)
    assert "2.5, is behind 2, the median of 5 trials" in reason_to_stop(
        None, behind, lambda _: [*done, Peer("4", 4.0, True)]
    )


def test_a_third_goes_on_at_a_rung_and_the_best_always() -> None:
    def goes_on(own: float, others: list[float]) -> bool:
        peers = [Peer(str(value), value, False) for value in others]
        return reason_to_stop("asha", Progress("t", (Report(1, own),), 1), lambda _: peers) == ""

    assert goes_on(1.0, [])
    assert goes_on(1.0, [1.0, 2.0])
    assert not goes_on(1.5, [1.0])
    assert goes_on(2.0, [1.0, 3.0, 4.0, 5.0, 6.0])
    assert not goes_on(2.5, [1.0, 2.0, 4.0, 5.0, 6.0])


def test_a_batch_counts_at_the_last_rung_that_it_reached() -> None:
    reports = tuple(Report(step, 1.0) for step in range(12))
    asked: list[int] = []
    for first_new in (2, 10):
        reason_to_stop("asha", Progress("t", reports, first_new), lambda step: asked.append(step) or [])  # type: ignore[func-returns-value]
    assert asked == [9]


def stopped_curves(rule: str, ends: Floats, rng: np.random.Generator) -> tuple[list[float], int]:
    """The ends of the curves that ran through, and the steps that were made: 27 of each curve without a rule."""
    table: dict[int, list[Peer]] = {}
    complete, steps = [], 0
    for number, end in enumerate(ends):
        reports: list[Report] = []
        for step in range(1, 28):
            reports.append(Report(step, float(end * (1 + 3 / step) * rng.lognormal(0, 0.05))))
            progress = Progress(f"trial-{number}", tuple(reports), step)
            if reason_to_stop(rule, progress, lambda step: table.get(step, [])):
                break
        complete += [float(end)] if len(reports) == 27 else []
        steps += len(reports)
        for report in reports:
            table.setdefault(report.step, []).append(Peer(f"trial-{number}", report.value, len(reports) == 27))
    return complete, steps


@pytest.mark.parametrize(("rule", "most_steps"), [("median", 0.6), ("asha", 0.35), ("hyperband", 0.55)])
def test_a_rule_saves_steps_and_keeps_a_trial_near_the_best(rule: str, most_steps: float) -> None:
    """Thirty studies of forty learning curves whose order at any step is their order at the end, but for 5 % noise."""
    steps, losses = 0, []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        ends = rng.lognormal(0.0, 0.5, 40)
        complete, made = stopped_curves(rule, ends, rng)
        steps += made
        losses.append(min(complete) / ends.min() - 1)
    assert steps < most_steps * 30 * 40 * 27
    assert np.mean(losses) < 0.02


def test_another_name_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="stop_early is 'mean', expected median, asha, hyperband, none"):
        reason_to_stop("mean", Progress("t", (), 0), lambda _: [])


@pytest.mark.parametrize(("step", "value"), [(-1, 0.0), (1.5, 0.0), (True, 0.0), (0, float("nan")), (0, "x")])
def test_a_report_has_a_whole_step_and_a_finite_value(step: int, value: float) -> None:
    with pytest.raises(InvalidInputError):
        Report(step, value)
