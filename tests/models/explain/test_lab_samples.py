"""Explanations of measured runs, held to what was injected; the lab's latest runs are left to the benchmark."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import pytest

from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.schema.answers.explanations import UNKNOWN, Explanation, Verdict
from crosswind.data.schema.injection import Injected
from crosswind.data.schema.run import Run, cohort_key
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store
from crosswind.models.explain.certainty import LEAST
from crosswind.models.explain.cohort.read import read_segments
from crosswind.models.explain.explain import explain, explain_runs
from crosswind.models.explain.within import Within

TRUTH = {
    "late_checkpoint": "slow_checkpoint",
    "pause": "stall",
    "slow_input": "slow_input",
    "slow_rank": "slow_compute",
    "rate_cap": "link_rate",
    "neighbour_job": "cpu_contention",
}
Lab = tuple[list[Run], Mapping[str, list[Injected]], dict[str, Explanation]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lab") / "store"


@pytest.fixture(scope="module")
def lab(home: Path) -> Lab:
    """The runs of the calibration part of three cohorts, what was injected, and their explanations."""
    with Store.open(home) as store:
        load_lab_samples(store)
        every = [run for run in all_runs(store) if "split" in run.tags]
        cohorts = sorted({cohort_key(run) for run in every})[::3]
        runs = [run for run in every if run.tags["split"] == "calibrate" and cohort_key(run) in cohorts]
        with store.catalog.read() as session:
            injected = session.injections.of_runs([run.run_id for run in runs])
        into = {run.run_id: [injection for injection in injected if injection.run_id == run.run_id] for run in runs}
        return runs, into, explain_runs(store, runs)


def test_injected_causes_are_named_and_quiet_runs_hardly_called_slow(lab: Lab) -> None:
    runs, into, explanations = lab
    kinds = {run_id: {fault.kind for fault in faults} for run_id, faults in into.items()}
    asked = [run for run in runs if kinds[run.run_id] & TRUTH.keys()]
    right = [any(explanations[run.run_id].cause == TRUTH.get(kind) for kind in kinds[run.run_id]) for run in asked]
    quiet = [explanations[run.run_id].verdict is Verdict.SLOW for run in runs if not kinds[run.run_id]]
    assert len(asked) > 8
    assert sum(right) / len(right) > 0.6  # weak faults among them, which cost next to nothing
    assert len(quiet) > 5
    assert sum(quiet) <= 1


def test_features_of_peers_say_the_same_as_their_steps(lab: Lab, home: Path) -> None:
    """A cohort of the lab, whose steps are read once more: sums of threads differ beyond the tenth digit."""
    runs, _, _ = lab
    with Store.open(home) as store:
        every = [run for run in all_runs(store) if cohort_key(run) == cohort_key(runs[0])]
        stored = explain_runs(store, every)
        segments = read_segments(store, every)
        for run in every[::14]:
            others = [segments[peer.run_id] for peer in every if peer.run_id != run.run_id]
            own = segments[run.run_id]
            anew = explain(run.run_id, own, others, within=Within.of_run(store, run, own))
            assert_alike(asdict(anew), asdict(stored[run.run_id]))


def assert_alike(anew: object, stored: object) -> None:
    """Every number within 1e-9 of the other's, and everything else equal but what an explanation of a store adds."""
    match anew:
        case dict():
            assert isinstance(stored, dict)
            for name in anew.keys() - {"culprit_node", "next_action", "missing", "failure"}:
                assert_alike(anew[name], stored[name])
        case tuple() | list():
            assert isinstance(stored, tuple | list)
            assert len(anew) == len(stored)
            for one, other in zip(anew, stored, strict=True):
                assert_alike(one, other)
        case float():
            assert stored == pytest.approx(anew, rel=1e-9, abs=1e-12, nan_ok=True)
        case _:
            assert stored == anew


def test_the_node_is_that_of_the_culprit_or_of_the_link_that_was_capped(lab: Lab) -> None:
    runs, into, explanations = lab
    by_rank = [
        run for run in runs if explanations[run.run_id].culprit_rank is not None and explanations[run.run_id].cause
    ]
    assert by_rank
    for run in by_rank:
        assert explanations[run.run_id].culprit_node in run.nodes
    capped = [explanations[run.run_id] for run in runs if explanations[run.run_id].cause == "link_rate"]
    assert capped
    assert all(explanation.culprit_node in {fault.node for fault in into[explanation.run_id]} for explanation in capped)


def test_the_shares_and_the_unexplained_part_are_the_excess(lab: Lab) -> None:
    for explanation in lab[2].values():
        assert explanation.excess is not None
        assert explanation.unexplained is not None
        parts = sum(share.seconds.value for share in explanation.shares) + explanation.unexplained.value
        assert parts == pytest.approx(explanation.excess.value, abs=1e-9)


def test_what_is_named_says_its_evidence_and_what_to_do(lab: Lab) -> None:
    named = [explanation for explanation in lab[2].values() if explanation.cause]
    assert named
    for explanation in named:
        assert explanation.verdict in {Verdict.SLOW, Verdict.PERHAPS_SLOW, Verdict.ONE_RANK_DELAYS}
        assert explanation.next_action
        for share in explanation.shares:
            assert "expected" in share.evidence


def test_no_headline_is_a_cause_that_hardly_any_redraw_has_first(lab: Lab) -> None:
    named = [explanation for explanation in lab[2].values() if explanation.cause not in (None, UNKNOWN)]
    assert named
    assert all(explanation.confidence and LEAST <= explanation.confidence < 1 for explanation in named)
