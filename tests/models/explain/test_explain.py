import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from crosswind.data.schema.answers.explanations import UNKNOWN, Expectation, Explanation, Verdict
from crosswind.models.explain.actions import PROFILE_ALL, SAMPLE
from crosswind.models.explain.causes import CAUSES
from crosswind.models.explain.cohort.columns import COLUMNS
from crosswind.models.explain.cohort.reference import TIME, reference_of, usual_of
from crosswind.models.explain.cohort.segments import Segments
from crosswind.models.explain.explain import explain
from crosswind.models.explain.masked_time import masked_seconds
from crosswind.models.explain.shares import DOUBT
from crosswind.models.explain.significance import student_spreads
from crosswind.models.explain.split import UNEXPLAINED, split

Draw = Callable[..., Segments]


@pytest.mark.parametrize(
    ("means", "cause"),
    [
        ({"input": 0.030}, "slow_input"),
        ({"checkpoint": 0.030}, "slow_checkpoint"),
        ({"other": 0.030}, "other_work"),
        ({"compute": 0.080, "run_queue_wait": 0.041}, "cpu_contention"),
        ({"fabric": 0.034, "comm_thread_wait": 0.030}, "cpu_contention"),
        ({"compute": 0.070, "cpu_system": 0.031, "minor_faults": 20_000.0}, "memory_traffic"),
        ({"compute": 0.070, "cpu_user": 0.068}, "slow_compute"),
        ({"fabric": 0.034}, "network"),
        ({"compute": 0.070, "throttled": 0.030}, "cpu_quota"),
        ({"compute": 0.070, "stalled": 0.030}, "stall"),
        ({"fabric": 0.034, "stalled_fabric": 0.028}, "stall"),
        ({"fabric": 0.034, "out_of_order": 40.0}, "packet_loss"),
        ({"fabric": 0.034, "timeouts": 0.05}, "packet_loss"),
        ({"fabric": 0.034, "overlimits": 300.0}, "link_rate"),
    ],
)
def test_each_cause_is_named_from_its_evidence(
    drawn: Draw, cohort: list[Segments], means: dict[str, float], cause: str
) -> None:
    explanation = explain("r", drawn(99, **means), cohort)
    assert explanation.verdict is Verdict.SLOW
    assert explanation.cause == cause
    assert explanation.confidence is not None
    assert explanation.confidence > 0.9
    assert cause.replace("_", " ") in explanation.sentence.lower()
    assert_sums(explanation)


def assert_sums(explanation: Explanation) -> None:
    assert explanation.unexplained is not None
    assert explanation.excess is not None
    parts = sum(share.seconds.value for share in explanation.shares) + explanation.unexplained.value
    assert parts == pytest.approx(explanation.excess.value, abs=1e-9)
    assert explanation.expected_seconds is not None
    assert explanation.expected_seconds + parts == pytest.approx(explanation.measured_seconds, abs=1e-9)


def unsteady(drawn: Draw) -> list[Segments]:
    """Runs that wait for cores for anything from nothing to 30 ms a step."""
    waits = np.linspace(0.001, 0.030, 9)
    return [drawn(seed, compute=0.039 + wait, run_queue_wait=wait) for seed, wait in enumerate(waits)]


def test_an_excess_that_a_cohort_shows_at_times_is_perhaps_slow_and_its_largest_share_named(drawn: Draw) -> None:
    explanation = explain("r", drawn(99, compute=0.066, run_queue_wait=0.027), unsteady(drawn))
    assert (explanation.verdict, explanation.cause) == (Verdict.PERHAPS_SLOW, "cpu_contention")
    assert explanation.sentence.startswith("Perhaps slow: 1.")
    assert "as runs of this cohort are at times by themselves. CPU contention on rank" in explanation.sentence
    assert explanation.also == ()
    assert_sums(explanation)


def test_perhaps_slow_by_nothing_that_is_known_names_no_cause(drawn: Draw) -> None:
    paces = np.linspace(1.0, 1.5, 9)
    cohort = [drawn(seed, compute=0.040 * pace) for seed, pace in enumerate(paces)]
    explanation = explain("r", drawn(99, compute=0.058), cohort)
    assert (explanation.verdict, explanation.cause) == (Verdict.PERHAPS_SLOW, None)
    assert "no cause has enough evidence" in explanation.sentence
    assert explanation.next_action == SAMPLE


def test_a_run_of_an_unsteady_cohort_that_took_its_usual_time_is_normal(drawn: Draw) -> None:
    explanation = explain("r", drawn(99, compute=0.045, run_queue_wait=0.006), unsteady(drawn))
    assert (explanation.verdict, explanation.cause) == (Verdict.NORMAL, None)


@pytest.mark.parametrize(("means", "rank"), [({"fabric": 0.034}, None), ({"compute": 0.080, "cpu_user": 0.078}, 1)])
def test_a_culprit_is_named_where_the_cause_has_a_rank(
    drawn: Draw, cohort: list[Segments], means: dict[str, float], rank: int | None
) -> None:
    explanation = explain("r", drawn(99, **means), cohort)
    assert (explanation.culprit_rank, explanation.culprit_ratio is None) == (rank, rank is None)


def test_more_steps_than_the_cohorts_runs_make_are_in_the_sentence(drawn: Draw, cohort: list[Segments]) -> None:
    run = drawn(99)
    longer = replace(run, values=np.vstack([run.values] * 2), culprits=np.ones(120), count=120)
    explanation = explain("r", replace(longer, peers=np.vstack([run.peers] * 2)), cohort)
    assert (explanation.verdict, explanation.steps, explanation.usual_steps) == (Verdict.NORMAL, 120, 60)
    assert explanation.sentence.endswith(" It made 120 steps where 60 are usual: 2.71 s of its time.")
    assert "It made" not in explain("r", run, cohort).sentence
    differing = [replace(earlier, count=60 + 10 * place) for place, earlier in enumerate(cohort)]
    assert explain("r", longer, differing).usual_steps is None


def test_kernel_time_without_page_faults_is_no_memory_traffic(drawn: Draw, cohort: list[Segments]) -> None:
    explanation = explain("r", drawn(99, compute=0.070, cpu_system=0.031), cohort)
    assert (explanation.verdict, explanation.cause) == (Verdict.SLOW, UNKNOWN)
    assert_sums(explanation)


def test_excess_without_evidence_stays_unexplained_and_its_cause_is_unknown(
    drawn: Draw, cohort: list[Segments]
) -> None:
    explanation = explain("r", drawn(99, compute=0.080), cohort)
    assert (explanation.verdict, explanation.cause, explanation.phase) == (Verdict.SLOW, UNKNOWN, "compute")
    assert explanation.unexplained is not None
    assert explanation.unexplained.value == pytest.approx(0.040 * 60, rel=0.1)
    assert "Unknown, in compute, took 100% of the excess" in explanation.sentence
    assert explanation.next_action == PROFILE_ALL
    assert [share.cause for share in explanation.shares if share.seconds.value > 0.01 * 60 * 0.04] == []


def test_a_cause_with_next_to_nothing_of_the_excess_comes_after_what_is_unknown(
    drawn: Draw, cohort: list[Segments]
) -> None:
    """It stands out by far, with a tenth of the expected time, but that is 2 % of what the run lost."""
    explanation = explain("r", drawn(99, compute=0.240, run_queue_wait=0.006), cohort)
    assert (explanation.cause, explanation.also) == (UNKNOWN, ("cpu_contention",))
    assert explanation.confidence is not None
    assert explanation.confidence > 0.9


def test_certainty_is_never_whole(drawn: Draw, cohort: list[Segments]) -> None:
    for means in ({"input": 0.030}, {"compute": 0.080}):
        confidence = explain("r", drawn(99, **means), cohort).confidence
        assert confidence is not None
        assert 0.99 < confidence < 1


def test_certainty_draws_the_runs_own_steps_again(drawn: Draw, cohort: list[Segments]) -> None:
    """The wait for batches and the one for storage of a checkpoint cost the same, each in two steps of sixty."""
    run = drawn(99)
    run.values[[10, 30], COLUMNS.index("checkpoint")] = 1.0
    run.values[[20, 40], COLUMNS.index("input")] = 1.01
    confidence = explain("r", run, cohort).confidence
    assert confidence is not None
    assert 0.2 < confidence < 0.8


def test_a_run_whose_interval_holds_zero_is_not_slow(drawn: Draw) -> None:
    """Its links were slower than ever, but its cohort's pace differs by more than that costs."""
    paced = [drawn(seed, pace=1 + 0.1 * seed) for seed in range(9)]
    explanation = explain("r", drawn(99, pace=1.3, fabric=0.012, overlimits=900.0), paced)
    assert explanation.excess is not None
    assert explanation.excess.low < 0 < explanation.excess.value
    assert (explanation.verdict, explanation.cause) == (Verdict.PERHAPS_SLOW, "link_rate")


def test_no_interval_implies_negative_time(drawn: Draw) -> None:
    scattered = [drawn(seed, pace=pace) for seed, pace in enumerate((0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0))]
    explanation = explain("r", drawn(99), scattered)
    assert explanation.excess is not None
    assert explanation.unexplained is not None
    assert explanation.expected_seconds is not None
    assert explanation.measured_seconds is not None
    for part in (explanation.excess, explanation.unexplained, *(share.seconds for share in explanation.shares)):
        assert part.low >= -explanation.expected_seconds
        assert part.high <= explanation.measured_seconds * 1.0001


def test_what_is_too_small_to_be_measured_is_nothing(drawn: Draw, cohort: list[Segments]) -> None:
    explanation = explain("r", drawn(99, input=0.0310000003), cohort)
    assert explanation.unexplained is not None
    assert explanation.unexplained.value == 0 or abs(explanation.unexplained.value) >= 60e-6
    assert all(share.seconds.value >= 60e-6 for share in explanation.shares)
    assert_sums(explanation)


def test_a_run_like_its_cohort_is_not_slow(drawn: Draw, cohort: list[Segments]) -> None:
    explanation = explain("r", drawn(99), cohort)
    assert explanation.verdict is Verdict.NORMAL
    assert explanation.cause is None
    assert_sums(explanation)


def test_no_interval_of_a_ratio_is_below_zero(drawn: Draw) -> None:
    scattered = [drawn(seed, pace=pace) for seed, pace in enumerate((0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0))]
    assert "expected step time [0-" in explain("r", drawn(99), scattered).sentence


def test_a_faster_run_is_not_slow_and_still_adds_up(drawn: Draw, cohort: list[Segments]) -> None:
    explanation = explain("r", drawn(99, compute=0.020), cohort)
    assert explanation.verdict is Verdict.NORMAL
    assert_sums(explanation)
    assert explanation.sentence.endswith("quicker than this cohort usually is.")


def test_evidence_that_was_not_recorded_claims_nothing(drawn: Draw, cohort: list[Segments]) -> None:
    unsampled = drawn(99, fabric=0.034, comm_thread_wait=math.nan)
    explanation = explain("r", unsampled, cohort)
    assert explanation.cause == "network"
    assert_sums(explanation)


def test_a_claim_never_exceeds_its_phase(drawn: Draw, cohort: list[Segments]) -> None:
    parts = split(drawn(99, compute=0.050, run_queue_wait=0.500).means, reference_of(cohort))
    assert parts.shares["cpu_contention"] == pytest.approx(0.010, rel=0.2)
    assert parts.shares["slow_compute"] == 0.0


def test_replicates_add_up_one_by_one(drawn: Draw, cohort: list[Segments]) -> None:
    parts = split(drawn(99, compute=0.080, run_queue_wait=0.030).means, reference_of(cohort))
    total = sum(parts.replicates[name] for name in (*(cause.name for cause in CAUSES), UNEXPLAINED))
    assert np.asarray(total) == pytest.approx(parts.replicates["excess"], abs=1e-12)


def test_causes_that_make_it_less_than_a_tenth_slower_are_named_where_the_cohort_never_differs_so(
    drawn: Draw, cohort: list[Segments]
) -> None:
    explanation = explain("r", drawn(99, input=0.004), cohort)
    assert (explanation.verdict, explanation.cause) == (Verdict.SLOW, "slow_input")
    assert explain("r", drawn(99, input=0.002), cohort).verdict is Verdict.NORMAL


def test_a_cause_in_few_steps_has_the_share_that_it_took_in_this_run(drawn: Draw, cohort: list[Segments]) -> None:
    run = drawn(99)
    run.values[[20, 40], COLUMNS.index("checkpoint")] = 0.5
    explanation = explain("r", run, cohort)
    assert explanation.cause == "slow_checkpoint"
    assert explanation.shares[0].seconds.value == pytest.approx(1.0)
    assert 0.9 < explanation.shares[0].seconds.low < 1.0


def test_the_culprit_is_the_rank_of_the_cause(drawn: Draw, cohort: list[Segments]) -> None:
    run = drawn(99)
    run.culprits[:50] = 0  # comes last in most steps, by nothing
    run.values[50:, COLUMNS.index("input")] = 0.1
    explanation = explain("r", run, cohort)
    assert (explanation.cause, explanation.culprit_rank) == ("slow_input", 1)


def test_few_steps_and_few_runs_are_not_enough(drawn: Draw, cohort: list[Segments]) -> None:
    short = Segments("r", 2, drawn(99).values[:5], np.ones(5), drawn(99).peers[:5])
    for explanation in (explain("r", short, cohort), explain("r", None, cohort), explain("r", drawn(99), cohort[:2])):
        assert explanation.verdict is Verdict.INSUFFICIENT_EVIDENCE
        assert explanation.excess is None
        assert explanation.shares == ()
        assert explanation.next_action


def test_the_reference_is_the_half_that_agrees_even_when_half_the_cohort_is_disturbed(drawn: Draw) -> None:
    undisturbed = [drawn(seed) for seed in range(6)]
    disturbed = [drawn(10 + seed, compute=0.060 + 0.020 * seed) for seed in range(5)]
    reference = reference_of([*disturbed, *undisturbed])
    assert reference.usual[COLUMNS.index("compute")] == pytest.approx(0.040, rel=0.01)
    assert reference.spread[TIME] < 0.02 * 0.045


def test_every_column_has_a_reference_of_its_own() -> None:
    """Each run is disturbed in one column of three, so that no half of the runs agrees in all."""
    means = np.array([[1.0 + (run % 3 == column) * (1 + run) for column in range(3)] for run in range(9)])
    assert usual_of(means) == pytest.approx([1.0, 1.0, 1.0])


def test_the_middle_of_the_half_that_agrees() -> None:
    assert usual_of(np.array([[1.0], [1.1], [1.3], [9.0], [4.0]]))[0] == pytest.approx(1.1)
    assert usual_of(np.array([[1.0], [1.1], [1.3], [9.0]]))[0] == pytest.approx(1.1)
    assert usual_of(np.array([[[2.0]], [[3.0]]])).shape == (2, 1)


def test_an_undisturbed_run_among_disturbed_ones_is_not_slow(drawn: Draw) -> None:
    others = [drawn(seed) for seed in range(6)] + [drawn(10 + seed, input=0.02 * seed) for seed in range(1, 6)]
    assert explain("r", drawn(99), others).verdict is Verdict.NORMAL
    assert explain("r", drawn(98, input=0.035), others).cause == "slow_input"


def test_a_cause_on_one_rank_is_seen_while_the_machines_pace_drifts(drawn: Draw) -> None:
    """Runs take 1 to 2.2 times as long, all ranks alike: only what a rank spends more than others stays comparable."""
    others = [drawn(seed, pace=1 + 0.2 * seed) for seed in range(7)]
    slow = drawn(99, pace=1.1, compute=0.065, cpu_system=0.026, minor_faults=20_000.0)
    explanation = explain("r", slow, others)
    assert explanation.cause == "memory_traffic"
    assert explanation.culprit_rank == 1
    assert "more than the others" in explanation.sentence
    assert_sums(explanation)
    assert explain("r", drawn(98, pace=1.1), others).verdict is Verdict.NORMAL


def test_a_slowdown_of_all_ranks_alike_is_still_slow(drawn: Draw, cohort: list[Segments]) -> None:
    explanation = explain("r", drawn(99, pace=1.5), cohort)
    assert explanation.verdict is Verdict.SLOW
    assert "more than the others" not in explanation.sentence


def test_two_causes_are_both_named_the_larger_one_first(drawn: Draw, cohort: list[Segments]) -> None:
    explanation = explain("r", drawn(99, input=0.021, checkpoint=0.010), cohort)
    assert (explanation.cause, explanation.also) == ("slow_input", ("slow_checkpoint",))
    assert "Slow input on rank 1 took 66% of the excess. Also: slow checkpoint took 33%" in explanation.sentence
    assert explain("r", drawn(99, input=0.021), cohort).also == ()


def test_a_rank_that_another_masks_is_named_too(drawn: Draw, cohort: list[Segments]) -> None:
    """Rank 1 waits for its batches and comes last; rank 0 computes longer meanwhile, which costs the run nothing."""
    run = drawn(99, input=0.031)
    run.of_ranks[0, [COLUMNS.index("compute"), COLUMNS.index("cpu_user")]] += 0.020
    explanation = explain("r", run, cohort)
    assert (explanation.cause, explanation.also, explanation.culprit_rank) == ("slow_input", ("slow_compute",), 1)
    assert "slow compute on rank 0 costs it" in explanation.sentence
    assert_sums(explanation)


def test_what_a_fifth_of_the_cohort_shows_is_usual(drawn: Draw) -> None:
    slower = {"compute": 0.043, "cpu_system": 0.004, "minor_faults": 3000.0}
    for count, is_slow in ((1, True), (5, False)):
        others = [*map(drawn, range(1, 16 - count)), *(drawn(30 + seed, **slower) for seed in range(count))]
        explanation = explain("r", drawn(99, **slower), others)
        assert (explanation.verdict is Verdict.SLOW) == is_slow


def test_few_runs_tell_less_of_what_is_usual() -> None:
    assert student_spreads(1000, 3.0) == pytest.approx(3.0, abs=0.02)
    assert student_spreads(36, 3.0) == pytest.approx(3.23, abs=0.01)  # Student's t of 35 degrees, as improbable
    assert student_spreads(4, 3.0) > 9


def test_an_interval_begins_at_what_would_be_saved(drawn: Draw, cohort: list[Segments]) -> None:
    """Without its 30 ms for batches rank 1 would have come 10 ms before rank 0, for which the run would have waited."""
    run = drawn(99, input=0.031)
    run.peers[:, COLUMNS.index("compute")] = run.values[:, COLUMNS.index("compute")] + 0.010
    [share] = [share for share in explain("r", run, cohort).shares if share.cause == "slow_input"]
    assert share.seconds.value == pytest.approx(0.030 * 60)
    assert share.seconds.low == pytest.approx(0.020 * 60 - DOUBT * share.seconds.value, rel=0.01)
    assert share.seconds.high == pytest.approx((1 + DOUBT) * share.seconds.value, rel=0.01)


def test_one_rank_and_what_belongs_to_all_ranks_hide_nothing(drawn: Draw) -> None:
    run = drawn(99, input=0.031)
    usual = drawn(1).means
    assert not masked_seconds(run, usual, ("fabric",)).any()
    alone = Segments("r", 1, run.values, np.zeros(60), np.full_like(run.peers, np.nan))
    assert not masked_seconds(alone, usual, ("input",)).any()


def test_a_stall_of_the_collectives_is_no_ranks(drawn: Draw, cohort: list[Segments]) -> None:
    of_all = explain("r", drawn(99, fabric=0.034, stalled_fabric=0.030), cohort)
    of_one = explain("r", drawn(99, compute=0.070, stalled=0.030), cohort)
    assert "Stall took" in of_all.sentence
    assert "Stall on rank 1 took" in of_one.sentence


def test_a_quick_run_of_which_one_rank_lags_by_a_tenth_is_delayed_and_not_slow(drawn: Draw) -> None:
    others = [drawn(seed, pace=1 + 0.01 * seed) for seed in range(8)]
    lagging = explain("r", drawn(99, pace=0.85, compute=0.046, cpu_user=0.044), others)
    assert lagging.verdict is Verdict.ONE_RANK_DELAYS
    assert lagging.sentence.startswith("One rank delays a run of usual time: 0.9")
    assert lagging.expected_from is Expectation.COHORT
    assert lagging.cause == "slow_compute"
    assert explain("r", drawn(99, pace=0.85, compute=0.041, cpu_user=0.039), others).verdict is Verdict.NORMAL


def test_what_is_next_to_nothing_in_most_runs_varies_as_its_tail_does(drawn: Draw) -> None:
    """Time that the hypervisor takes: most runs lose hardly any, some a little, so that a little more is usual."""
    stolen = np.random.default_rng(3).exponential(0.002, 24)
    tailed = [drawn(seed, compute=0.040 + taken, stolen=taken) for seed, taken in enumerate(stolen)]
    column = COLUMNS.index("stolen")
    reference = reference_of(tailed)
    assert reference.spread["stolen"] > 1.5 * (np.median(stolen) - stolen.min())
    assert reference.usual[column] < np.median(stolen)
    assert explain("r", drawn(99, compute=0.0436, stolen=0.0036), tailed).verdict is Verdict.NORMAL
    assert explain("r", drawn(99, compute=0.060, stolen=0.020), tailed).cause == "cpu_steal"
