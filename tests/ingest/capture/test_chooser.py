"""The choice of ranks and steps to trace, as a function of the steps alone."""

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ingest.capture.made_steps import STEP, made_steps

from crosswind.ingest.capture.chooser import QUIET, RECENT, WARM_UP, Choice, Chooser, Reason, Role
from crosswind.ingest.capture.steps import PATIENCE, RankStep, StepTable

NOTICED = (Reason.SLOW_RANK, Reason.SLOWER)


def choices(chooser: Chooser, rows: Iterable[RankStep]) -> list[Choice]:
    """All choices of a run whose every choice is traced."""
    made = []
    for row in rows:
        if choice := chooser.observe((row,)):
            chooser.taken(choice)
            made.append(choice)
    return made


@settings(deadline=None, max_examples=40)
@given(
    ranks=st.integers(3, 32),
    culprit=st.integers(0, 31),
    begin=st.integers(0, 60),
    share=st.floats(0.2, 5),
    most=st.integers(1, 4),
)
def test_the_slow_rank_is_traced_within_the_most_ranks_allowed(
    ranks: int, culprit: int, begin: int, share: float, most: int
) -> None:
    culprit %= ranks
    rows = made_steps(ranks, 120, lambda rank, step: share * STEP if rank == culprit and step >= begin else 0.0)
    made = [choice for choice in choices(Chooser(most), rows) if choice.reason in NOTICED]
    assert made
    assert made[0].ranks[culprit] is Role.CULPRIT
    assert all(1 <= len(choice.ranks) <= min(most, ranks) for choice in made)
    assert made[0].newest <= max(begin, 2 * WARM_UP) + RECENT


def test_a_capture_has_the_culprit_a_victim_and_an_ordinary_rank() -> None:
    lags = [0.0, 0.5, 0.1, -0.15, 0.0]
    rows = made_steps(5, 60, lambda rank, _: lags[rank] * STEP)
    [choice, *_] = [choice for choice in choices(Chooser(3), rows) if choice.reason is Reason.SLOW_RANK]
    assert choice.ranks[1] is Role.CULPRIT
    assert choice.ranks[3] is Role.VICTIM
    assert sorted(choice.ranks.values()) == [Role.CULPRIT, Role.ORDINARY, Role.VICTIM]


def test_two_ranks_that_share_a_disturbed_core_are_both_culprits() -> None:
    rows = made_steps(4, 60, lambda rank, _: 0.5 * STEP if rank in (0, 2) else 0.0)
    made = [choice for choice in choices(Chooser(2), rows) if choice.reason is not Reason.BASELINE]
    chooser = Chooser(2)
    list(map(chooser.observe, ([row] for row in made_steps(4, 60, lambda r, _: 0.5 * STEP * (r in (0, 2))))))
    assert set(chooser.ranks()) == {0, 2}
    assert all(set(choice.ranks) == {0, 2} for choice in made)


def test_an_even_run_has_a_baseline_of_one_rank_after_warm_up_and_one_later_capture() -> None:
    [baseline, quiet] = choices(Chooser(), made_steps(8, 300))
    assert (baseline.reason, list(baseline.ranks.values())) == (Reason.BASELINE, [Role.ORDINARY])
    assert baseline.newest >= WARM_UP
    assert (quiet.reason, len(quiet.ranks)) == (Reason.QUIET, 3)
    assert QUIET <= quiet.newest <= QUIET + WARM_UP


def test_a_rank_whose_lag_is_too_small_to_be_noticed_is_traced_in_the_end() -> None:
    rows = made_steps(4, 80, lambda rank, _: 0.03 * STEP if rank == 2 else 0.0)
    [_, choice] = choices(Chooser(2), rows)
    assert (choice.reason, choice.ranks[2]) == (Reason.QUIET, Role.CULPRIT)


def test_after_a_capture_of_culprits_there_is_none_for_lack_of_reasons() -> None:
    rows = made_steps(4, 300, lambda rank, step: STEP if rank == 2 and 20 <= step < 30 else 0.0)
    assert {choice.reason for choice in choices(Chooser(2), rows)} == {Reason.BASELINE, Reason.SLOW_RANK}


def test_the_same_lag_is_traced_once_and_again_when_it_comes_back() -> None:
    always = made_steps(4, 400, lambda rank, step: STEP if rank == 2 and step > 50 else 0.0)
    assert [choice.reason for choice in choices(Chooser(), always)].count(Reason.SLOW_RANK) == 1
    twice = made_steps(4, 900, lambda rank, step: STEP if rank == 2 and step // 100 in (1, 8) else 0.0)
    assert [choice.reason for choice in choices(Chooser(), twice)].count(Reason.SLOW_RANK) == 2


def test_a_run_that_becomes_slower_on_all_ranks_is_traced() -> None:
    rows = made_steps(4, 200, lambda _, step: 0.5 * STEP if step >= 100 else 0.0)
    reasons = [choice.reason for choice in choices(Chooser(), rows)]
    assert reasons == [Reason.BASELINE, Reason.QUIET, Reason.SLOWER]


def test_in_a_run_that_becomes_slower_the_rank_that_lags_more_than_before_is_the_culprit() -> None:
    def lag(rank: int, step: int) -> float:
        return (0.04 * (rank == 0) + (step >= 100) * (0.5 + 0.06 * (rank == 3))) * STEP

    [choice, *_] = [c for c in choices(Chooser(1), made_steps(4, 200, lag)) if c.reason is Reason.SLOWER]
    assert (choice.reason, choice.ranks) == (Reason.SLOWER, {3: Role.CULPRIT})


def test_a_rank_that_is_slow_in_every_other_step_is_the_culprit() -> None:
    rows = made_steps(4, 100, lambda rank, step: 0.5 * STEP if rank == 2 and step % 2 else 0.0)
    [choice, *_] = [choice for choice in choices(Chooser(2), rows) if choice.reason is not Reason.BASELINE]
    assert choice.ranks[2] is Role.CULPRIT


def test_captured_steps_are_no_reason_for_a_capture() -> None:
    rows = list(made_steps(4, 200, lambda rank, step: 50 * STEP if rank == 1 and 100 <= step < 104 else 0.0))
    assert any(choice.reason is Reason.SLOW_RANK for choice in choices(Chooser(), rows))
    chooser = Chooser()
    chooser.has_baseline = chooser.has_culprits = True
    assert all(chooser.observe((row,), left_out=range(100, 104)) is None for row in rows)


def test_one_rank_alone_is_no_culprit() -> None:
    made = choices(Chooser(), made_steps(1, 200))
    assert [choice.reason for choice in made] == [Reason.BASELINE]


@given(order=st.permutations(list(made_steps(3, 8))))
def test_rows_in_any_order_make_the_same_steps(order: list[RankStep]) -> None:
    table = StepTable({0, 1, 2})
    for row in order:
        table.add(row)
    assert [(step, sorted(rows)) for step, rows in table.complete()] == [(step, [0, 1, 2]) for step in range(8)]


def test_a_silent_rank_is_waited_for_only_so_long() -> None:
    table = StepTable()
    table.add(RankStep(1, 0, STEP, 0.0))
    for step in range(PATIENCE + 3):
        table.add(RankStep(0, step, STEP, 0.0))
    assert [(step, len(rows)) for step, rows in table.complete()] == [(0, 2), (1, 1), (2, 1)]
    table.add(RankStep(1, 2, STEP, 0.0))  # it comes too late
    assert list(table.complete()) == []
