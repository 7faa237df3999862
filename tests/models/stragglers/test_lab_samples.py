"""On our own lab's samples, whose tags tell which rank was disturbed."""

from collections import Counter
from collections.abc import Iterator

import pytest

from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.schema.answers.stragglers import PeerKind
from crosswind.data.schema.run import Run
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store
from crosswind.models.stragglers.fleet import fleet_ranking
from crosswind.models.stragglers.live import stragglers_of_run
from crosswind.models.stragglers.regressions import regressions

ONE_RANKS = ("slow_rank", "slow_input", "late_checkpoint")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("lab")) as store:
        load_lab_samples(store)
        yield store


def disturbed(store: Store) -> list[tuple[Run, int]]:
    """The later runs of which one rank was disturbed in its own phases, and that rank."""
    late = [run for run in all_runs(store) if run.tags.get("split") == "test"]
    injections = [(run, run.tags["injected"].split(":")) for run in late]
    return [(run, int(words[1])) for run, words in injections if words[0] in ONE_RANKS]


@pytest.mark.thorough
def test_the_disturbed_rank_is_the_one_named(lab: Store) -> None:
    outcomes: Counter[str] = Counter()
    for run, rank in disturbed(lab):
        lost: Counter[int] = Counter()
        answer = stragglers_of_run(lab, run.run_id)
        for episode in answer.episodes:
            last = answer.newest_step if episode.last_step is None else episode.last_step
            if episode.rank is not None and last is not None:
                lost[episode.rank] += round(1e6 * episode.lag_seconds * (last - episode.first_step + 1))
        named = max(lost, key=lambda one: lost[one]) if lost else None
        outcomes["nobody" if named is None else "right" if named == rank else "wrong"] += 1
        assert all(straggling.noticed_after_seconds < 10 for straggling in answer.episodes)
    assert outcomes.total() == 19
    assert outcomes["right"] >= 12  # 13 when this was written; the others are within the noise of two shared cores
    assert outcomes["wrong"] <= 1


@pytest.mark.thorough
def test_faults_of_random_nodes_make_no_slow_node(lab: Store) -> None:
    ranking = fleet_ranking(lab)
    assert ranking.compared_runs == ranking.runs == 437
    assert [component.name for component in ranking.named if component.kind is PeerKind.NODE] == []


def test_nothing_changed_for_good_within_forty_minutes(lab: Store) -> None:
    assert regressions(lab).changes == ()
