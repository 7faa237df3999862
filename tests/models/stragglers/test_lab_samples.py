"""On our own lab's samples, whose tags tell which rank was disturbed."""

from collections import Counter
from collections.abc import Iterator

import pytest

from crosswind.data.features import all_runs
from crosswind.data.run import Run
from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.store import Store
from crosswind.models.stragglers.fleet import fleet_ranking
from crosswind.models.stragglers.live import stragglers_of_run
from crosswind.models.stragglers.ranking import Kind
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
    told = [(run, run.tags["injected"].split(":")) for run in late]
    return [(run, int(words[1])) for run, words in told if words[0] in ONE_RANKS]


@pytest.mark.thorough
def test_the_disturbed_rank_is_the_one_named(lab: Store) -> None:
    found: Counter[str] = Counter()
    for run, rank in disturbed(lab):
        lost: Counter[int] = Counter()
        told = stragglers_of_run(lab, run.run_id)
        for each in told.episodes:
            last = told.newest_step if each.last_step is None else each.last_step
            if each.rank is not None and last is not None:
                lost[each.rank] += round(1e6 * each.lag_seconds * (last - each.first_step + 1))
        named = max(lost, key=lambda one: lost[one]) if lost else None
        found["nobody" if named is None else "right" if named == rank else "wrong"] += 1
        assert all(each.noticed_after_seconds < 10 for each in told.episodes)
    assert found.total() == 19
    assert found["right"] >= 12  # 13 when this was written; the others are within the noise of two shared cores
    assert found["wrong"] <= 1


@pytest.mark.thorough
def test_faults_of_random_nodes_make_no_slow_node(lab: Store) -> None:
    ranking = fleet_ranking(lab)
    assert ranking.compared_runs == ranking.runs == 437
    assert [each.name for each in ranking.named if each.kind is Kind.NODE] == []


def test_nothing_changed_for_good_within_forty_minutes(lab: Store) -> None:
    assert regressions(lab).changes == ()
