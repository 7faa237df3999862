from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.schema.answers.studies import DisturbanceBasis
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.run import Run
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store
from crosswind.models.explain.causes import CAUSES
from crosswind.models.explain.cohort.columns import COLUMNS
from crosswind.models.explain.cohort.segments import Segments
from crosswind.models.explain.cohort.step_rows import ranks_of, spans_of
from crosswind.models.tuner.evidence.disturbed import disturbance_of
from crosswind.models.tuner.evidence.external import AGAINST_ITS_OWN, AGAINST_OTHERS, MADE_BY, ON_ONE_RANK, is_made_by
from crosswind.models.tuner.evidence.other_runs import SampledRun, losses_by_others
from crosswind.models.tuner.evidence.others_on_cores import others_shares

AddRun = Callable[..., Run]


def segments(seed: int, pace: float = 1.0, **means: float) -> Segments:
    """A run of two ranks and 40 segments with 2 % noise on compute; a number is of both ranks and per segment."""
    usual = dict.fromkeys(COLUMNS, 0.0) | {"compute": 0.08, "fabric": 0.02, "cpu_user": 0.06, "run_queue_wait": 0.01}
    values = np.tile([(usual | means)[name] for name in COLUMNS], (40, 1)) * pace
    values[:, COLUMNS.index("compute")] *= np.random.default_rng(seed).normal(1.0, 0.02, 40)
    return Segments(f"r{seed}", 2, values, np.ones(40), values, of_ranks=np.tile(values.mean(axis=0), (2, 1)))


OTHERS = [SampledRun(segments(seed, pace=0.5 + seed / 4), 0.03) for seed in range(1, 9)]


def test_every_external_cause_is_a_cause() -> None:
    names = {cause.name for cause in CAUSES}
    assert AGAINST_ITS_OWN.keys() | AGAINST_OTHERS.keys() | ON_ONE_RANK | MADE_BY.keys() <= names
    assert AGAINST_OTHERS.keys() | ON_ONE_RANK <= AGAINST_ITS_OWN.keys()


def test_an_undisturbed_run_lost_nothing_however_slow_its_configuration_is() -> None:
    for seed, pace in enumerate((0.2, 1.0, 5.0)):
        assert losses_by_others(SampledRun(segments(seed, pace), 0.04), OTHERS, (), 0.1) == []


def test_others_on_its_cores_show_even_without_another_run() -> None:
    waiting = SampledRun(segments(20, compute=0.12, run_queue_wait=0.05), 0.4)
    [alone] = losses_by_others(waiting, [], (), 0.1)
    assert (alone.cause, round(alone.ratio, 2)) == ("cpu_contention", 0.4)
    [compared] = losses_by_others(waiting, OTHERS, (), 0.1)
    assert round(compared.ratio, 2) == 0.37  # 3 % are usual
    assert compared.low < compared.ratio < compared.high
    idle = SampledRun(segments(21, run_queue_wait=0.0, fabric=0.0), 0.4)  # others ran, and it never waited
    assert losses_by_others(idle, OTHERS, (), 0.1) == []


def test_stolen_time_shows_and_a_tuned_power_limit_is_not_external() -> None:
    [stolen] = losses_by_others(SampledRun(segments(22, compute=0.1, stolen=0.03)), OTHERS, (), 0.1)
    assert stolen.cause == "cpu_steal"
    capped = SampledRun(segments(23, compute=0.1, power_throttled=0.03))
    [cap] = losses_by_others(capped, OTHERS, ("batch",), 0.1)
    assert cap.cause == "power_cap"
    assert losses_by_others(capped, OTHERS, ("power_limit_watts",), 0.1) == []


def test_what_may_be_made_by_a_parameter() -> None:
    assert is_made_by("low_clock", ["sm_clock_mhz"])
    assert not is_made_by("low_clock", ["batch"])
    assert not is_made_by("packet_loss", ["power_limit"])


def test_too_few_steps_are_no_evidence(store: Store, add_run: AddRun) -> None:
    add_run("short", {}, steps=[1.0] * 5)
    disturbance = disturbance_of(store, "short")
    assert (disturbance.basis, disturbance.is_disturbed) == (DisturbanceBasis.NOTHING, False)
    assert disturbance.sentence.startswith("Nothing tells whether run short was disturbed: expected 10 steps")
    assert others_shares(store, [], [], spans_of(store, [])) == {}


def test_bad_input_is_refused(store: Store, add_run: AddRun) -> None:
    add_run("r", {})
    with pytest.raises(NotFoundError, match="run 'nowhere' is not in the catalog"):
        disturbance_of(store, "nowhere")
    with pytest.raises(NotFoundError, match="run 'nowhere' is not in the catalog"):
        disturbance_of(store, "r", others=["nowhere"])
    with pytest.raises(InvalidInputError, match=r"least is 1\.0, expected a share between 0 and 1"):
        disturbance_of(store, "r", least=1.0)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("lab")) as opened:
        load_lab_samples(opened)
        yield opened


def with_faults(store: Store, kinds: str, split: str = "train") -> list[Run]:
    """The image classifier's runs of this part into which just these kinds were injected."""
    runs = [run for run in all_runs(store, RunFilter(workload="image-classifier")) if run.tags.get("split") == split]
    with store.catalog.read() as session:
        injected = session.injections.of_runs([run.run_id for run in runs])
    injected_kinds = {
        run.run_id: {injection.kind for injection in injected if injection.run_id == run.run_id} for run in runs
    }
    return [run for run in runs if injected_kinds[run.run_id] == set(filter(None, [kinds]))]


def test_others_shares_tell_neighbours_from_quiet_runs(lab: Store) -> None:
    shares = {}
    for kinds in ("neighbour_job", ""):
        runs = with_faults(lab, kinds)
        by_run = others_shares(lab, runs, ranks_of(lab, runs), spans_of(lab, runs))
        shares[kinds] = list(by_run.values())
        assert len(by_run) == len(runs) > 1
    assert min(shares["neighbour_job"]) > 0.3
    assert np.median(shares[""]) < 0.06


def test_with_runs_of_its_configuration_the_explanation_decides(lab: Store) -> None:
    neighbour = disturbance_of(lab, with_faults(lab, "neighbour_job")[0].run_id)
    assert (neighbour.basis, neighbour.is_disturbed) == (DisturbanceBasis.OWN_RUNS, True)
    assert neighbour.lost[0].cause == "cpu_contention"
    assert neighbour.sentence.startswith("Repeat it: external causes took of the time of run ")
    quiet = disturbance_of(lab, with_faults(lab, "")[0].run_id)
    assert (quiet.basis, quiet.is_disturbed) == (DisturbanceBasis.OWN_RUNS, False)
    assert quiet.sentence.startswith("No known external cause took 10% of the time of run ")


def test_a_configuration_tried_once_is_compared_with_others(
    lab: Store, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Store.open(tmp_path_factory.mktemp("alone")) as alone:
        load_lab_samples(alone)
        with alone.catalog.write() as session:
            for number, run in enumerate(all_runs(lab, RunFilter(workload="image-classifier"))):
                session.runs.merge(replace(run, configuration={**run.configuration, "trial": number}))
        quiet, disturbed = with_faults(alone, ""), with_faults(alone, "neighbour_job")
        others = [run.run_id for run in quiet[2:8]]
        for run in disturbed[:2]:
            disturbance = disturbance_of(alone, run.run_id, others=others)
            assert (disturbance.basis, disturbance.is_disturbed) == (DisturbanceBasis.OTHER_RUNS, True)
            assert "compared with 6 runs of other configurations, none of its own" in disturbance.sentence
        for run in quiet[:2]:
            assert not disturbance_of(alone, run.run_id, others=others).is_disturbed
