from pathlib import Path

import pytest
from tests.models.advice.measured_ranks import store_run

from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.schema.answers.advice import BatchShares
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.trial import Configuration
from crosswind.data.store.store import Store
from crosswind.models.advice.shares_of_run import shares_of_run


def measured_shares(home: Path, batch: int | None = None, *, now_batch: int | None = None) -> BatchShares:
    with Store.open(home) as store:
        return shares_of_run(store, "measured", batch, now_batch=now_batch)


def test_a_rank_half_as_fast_gets_half_and_all_finish_together(tmp_path: Path) -> None:
    store_run(tmp_path, [1.0, 1.0, 2.0], {"batch": 10})
    shares = measured_shares(tmp_path, 30)
    assert [rank.samples for rank in shares.ranks] == [12, 12, 6]
    assert [rank.equal_samples for rank in shares.ranks] == [10, 10, 10]
    assert [rank.node for rank in shares.ranks] == ["n0", "n1", "n2"]
    assert [rank.shared_compute_seconds for rank in shares.ranks] == pytest.approx([0.12] * 3)
    assert [rank.compute_seconds for rank in shares.ranks] == pytest.approx([0.1, 0.1, 0.2])
    assert (shares.now_batch, shares.present) == (30, "batch x 3 ranks")
    assert shares.steps == 100  # three are warm-up
    # 0.2 s of the slowest rank and 0.01 s of communication become 0.12 s and as much communication.
    assert (shares.equal_step_seconds, shares.shared_step_seconds) == pytest.approx((0.21, 0.13))
    assert (shares.gain_ratio, shares.gain_low_ratio, shares.gain_high_ratio) == pytest.approx([1 - 13 / 21] * 3)


def test_without_a_batch_it_stays_as_large_as_it_is(tmp_path: Path) -> None:
    store_run(tmp_path, [1.0, 2.0], {"global_batch": 30})
    assert [rank.samples for rank in measured_shares(tmp_path).ranks] == [20, 10]


@pytest.mark.parametrize(
    ("configuration", "now", "present"),
    [
        ({"batch": 8}, 16, "batch x 2 ranks"),
        ({"batch_size": 8}, 16, "batch_size x 2 ranks"),
        ({"micro_batch": 8}, 16, "micro_batch x 2 ranks"),
        ({"micro_batch": 4, "accumulation_steps": 3}, 24, "micro_batch x accumulation_steps x 2 ranks"),
        ({"global_batch": 64, "micro_batch": 4, "batch": 32}, 64, "global_batch"),
    ],
)
def test_parameters_tell_the_present_batch(
    tmp_path: Path, configuration: Configuration, now: float, present: str
) -> None:
    store_run(tmp_path, [1.0, 1.0], configuration)
    shares = measured_shares(tmp_path, 32)
    assert (shares.now_batch, shares.present) == (now, present)


def test_the_present_batch_can_be_told(tmp_path: Path) -> None:
    store_run(tmp_path, [1.0, 2.0], {"width": 8})
    assert measured_shares(tmp_path, 30, now_batch=60).present == "now_batch"
    # Half of the samples now take half of the compute seconds: 0.1 s on the slow rank against 20 x 0.1/30 s.
    assert measured_shares(tmp_path, 30, now_batch=60).equal_step_seconds == pytest.approx(0.11)
    assert measured_shares(tmp_path, 30, now_batch=60).shared_step_seconds == pytest.approx(0.01 + 20 * 0.1 / 30)


def test_ranks_equally_fast_keep_equal_shares_and_gain_nothing(tmp_path: Path) -> None:
    store_run(tmp_path, [1.0] * 4, {"batch": 100}, noise=0.05)
    shares = measured_shares(tmp_path)
    assert [rank.samples for rank in shares.ranks] == pytest.approx([100] * 4, abs=2)  # medians off by 0.6 %
    assert shares.gain_low_ratio < 0.005  # nothing to gain but for luck
    assert abs(shares.gain_ratio) < 0.01


def test_the_interval_holds_what_the_known_speeds_gain(tmp_path: Path) -> None:
    store_run(tmp_path, [1.0, 1.0, 1.5, 1.0], {"batch": 64}, noise=0.05, steps=203)
    shares = measured_shares(tmp_path)
    # Without noise 0.16 s would become 0.01 + 64 x 4 / (3 + 1/1.5) x 0.1 / 64 = 0.119 s: 25.5 %. The noise of four
    # ranks as slow as each other lifts the slowest by one deviation, 5 % of 0.109 s, or 3.4 % of the step.
    assert shares.gain_ratio == pytest.approx(0.255 - 0.034, abs=0.02)
    assert shares.gain_low_ratio < shares.gain_ratio < shares.gain_high_ratio
    assert shares.gain_high_ratio - shares.gain_low_ratio < 0.03  # 200 steps of 5 %


def test_a_batch_far_from_the_measured_one_is_warned_of(tmp_path: Path) -> None:
    store_run(tmp_path, [1.0, 2.0], {"batch": 8})
    assert any("far from the 16 that was measured" in warning for warning in measured_shares(tmp_path, 160).warnings)
    assert not any("far from" in warning for warning in measured_shares(tmp_path, 30).warnings)


@pytest.mark.parametrize(
    ("configuration", "batch", "now_batch", "message"),
    [
        ({"width": 3}, 8, None, "none of its parameters width is batch, .* expected now_batch"),
        ({}, 8, None, "none of its parameters .it has none. is batch"),
        ({"batch": "big"}, 8, None, "configuration batch is 'big', expected a number from 1 on"),
        ({"batch": True}, 8, None, "configuration batch is True"),
        ({"batch": 0}, 8, None, "configuration batch is 0"),
        ({"global_batch": 1}, 8, None, "now_batch 1: expected 2, one for each rank"),
        ({"batch": 8}, 1, None, "batch 1: expected 2, one for each rank"),
        ({"batch": 8}, 10**10, None, "batch 1e[+]10: expected 2"),
        ({"batch": 8}, 8, 1, "now_batch 1: expected 2"),
        ({"batch": 8, "tensor_parallel": 2}, 8, None, "configuration tensor_parallel is 2, expected 1"),
        ({"batch": 8, "pp": 2}, 8, None, "configuration pp is 2, expected 1"),
    ],
)
def test_what_cannot_be_shared_is_refused(
    tmp_path: Path, configuration: Configuration, batch: int, now_batch: int | None, message: str
) -> None:
    store_run(tmp_path, [1.0, 1.0], configuration)
    with pytest.raises(InvalidInputError, match=message):
        measured_shares(tmp_path, batch, now_batch=now_batch)


@pytest.mark.parametrize(
    ("steps", "message"),
    [(0, "no step after its first 3 is recorded"), (3, "no step after its first 3"), (22, "19 steps tell every rank")],
)
def test_too_few_steps_are_refused(tmp_path: Path, steps: int, message: str) -> None:
    store_run(tmp_path, [1.0, 1.0], {"batch": 8}, steps=steps)
    with pytest.raises(InvalidInputError, match=message):
        measured_shares(tmp_path, 8)


def test_ranks_that_compute_nothing_or_are_missing_are_refused(tmp_path: Path) -> None:
    store_run(tmp_path, [1.0, 0.0], {"batch": 8})
    with pytest.raises(InvalidInputError, match="with compute seconds above 0"):
        measured_shares(tmp_path, 8)
    with Store.open(tmp_path) as store, store.catalog.write() as session:
        session.runs.merge(Run("measured", "toy", "lab", RunState.COMPLETED, 3))
    with pytest.raises(InvalidInputError, match="steps of 2 ranks are recorded, expected 3"):
        measured_shares(tmp_path, 8)


def test_a_run_that_nobody_knows_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="measured"):
        measured_shares(tmp_path, 8)


@pytest.mark.thorough
def test_on_runs_of_the_lab_the_shares_make_up_the_batch(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        load_lab_samples(store)
        with store.catalog.read() as session:
            runs = [run for run in session.runs.find(limit=500) if "split" in run.tags][::40]
        for run in runs:
            shares = shares_of_run(store, run.run_id)
            assert sum(rank.samples for rank in shares.ranks) == shares.batch == shares.now_batch
            assert shares.steps == 57
            assert shares.gain_low_ratio <= shares.gain_ratio <= shares.gain_high_ratio
