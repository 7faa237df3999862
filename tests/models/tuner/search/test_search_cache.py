"""Searches cached between suggestions."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.models.tuner.service.service_contract import in_threads

from crosswind.data.schema.trial import Configuration, Study, Trial, TrialRecord, TrialState
from crosswind.models.tuner.search.random_tuner import RandomTuner
from crosswind.models.tuner.search.search import PlainSearch, PriorStudies, Search, search_for
from crosswind.models.tuner.search.search_cache import FRESH_SECONDS, STUDIES_MAX, SearchCache
from crosswind.models.tuner.search.source import Source

SPACE = {"threads": {"kind": "int", "low": 1, "high": 40}}
STUDY = Study("s1", "s", SPACE, "step_seconds", "s", 0, 1)
SOURCE = Source("a", [{"threads": threads} for threads in (7, 8, 9)], [1.0, 2.0, 3.0])


class Recording:
    """A search that records what it observes."""

    def __init__(self) -> None:
        self.news: list[list[str]] = []

    def observe(self, records: Sequence[TrialRecord]) -> None:
        self.news.append([record.trial.trial_id for record in records])

    def suggest(self, count: int) -> list[Configuration]:
        return [{"threads": threads} for threads in range(count)]

    def weights(self) -> Mapping[str, float]:
        return {}


class Made:
    """Makes searches and counts them."""

    def __init__(self) -> None:
        self.prior: list[PriorStudies] = []

    def __call__(self, study: Study, prior: PriorStudies) -> Search:
        self.prior.append(prior)
        return Recording()


def record(number: int, state: TrialState = TrialState.LEASED, **outcomes: float) -> TrialRecord:
    objective = 1.0 if state is TrialState.DONE else None
    return TrialRecord(Trial({"threads": number}, state, objective, f"t{number}"), "s1", outcomes=outcomes)


def test_only_what_changed_is_observed() -> None:
    cached = SearchCache(Made()).get(STUDY)
    first, second = record(1), record(2)
    cached.suggest([first, second], 1)
    cached.suggest([replace(first, owner="other"), second], 1)
    cached.suggest([first, record(2, TrialState.DONE), record(3)], 1)
    cached.suggest([first, record(2, TrialState.DONE, power_watts=3.0), record(3)], 1)
    assert isinstance(cached.search, Recording)
    assert cached.search.news == [["t1", "t2"], [], ["t2", "t3"], ["t2"]]


def test_a_search_is_made_once_until_what_it_starts_from_changes() -> None:
    now, stored, made = [0.0], [PriorStudies()], Made()
    cache = SearchCache(made, lambda study: stored[0], clock=lambda: now[0])
    first = cache.get(STUDY)
    stored[0] = PriorStudies((SOURCE,))
    now[0] = FRESH_SECONDS
    assert cache.get(STUDY) is first
    now[0] = 2 * FRESH_SECONDS + 1
    second = cache.get(STUDY)
    now[0] = 4 * FRESH_SECONDS
    assert cache.get(STUDY) is second
    assert cache.get(replace(STUDY, space={"threads": {"kind": "int", "low": 1, "high": 4}})) is not second
    assert made.prior == [PriorStudies(), PriorStudies((SOURCE,)), PriorStudies((SOURCE,))]


def test_few_searches_are_cached() -> None:
    made = Made()
    cache = SearchCache(made)
    for number in range(STUDIES_MAX + 1):
        cache.get(replace(STUDY, study_id=f"s{number}"))
        cache.get(replace(STUDY, study_id="s0"))
    cache.get(replace(STUDY, study_id="s1"))
    assert len(made.prior) == STUDIES_MAX + 2


def test_a_study_goes_on_though_prior_studies_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    def broken(study: Study) -> PriorStudies:
        raise OSError("the disk is gone")

    assert len(SearchCache(search_for, broken).get(STUDY).suggest([], 3)) == 3
    assert "earlier trials cannot be read" in caplog.text


def test_sources_that_no_tuner_can_use_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    def picky(study: Study, prior: PriorStudies) -> Search:
        if prior.sources:
            raise ValueError("a source of another kind")
        return Recording()

    assert len(SearchCache(picky, lambda study: PriorStudies((SOURCE,))).get(STUDY).suggest([], 3)) == 3
    assert "no use of a" in caplog.text


def test_threads_that_ask_at_once_wait_for_one_search() -> None:
    made, answers, begun = Made(), [], threading.Event()

    def slow(study: Study) -> PriorStudies:
        begun.wait(0.2)
        return PriorStudies()

    cache = SearchCache(made, slow)
    in_threads(lambda: answers.append(cache.get(STUDY)), 8)
    assert len(made.prior) == 1
    assert all(search is answers[0] for search in answers)


def test_sources_are_tried_first() -> None:
    cached = SearchCache(search_for, lambda study: PriorStudies((SOURCE,))).get(STUDY)
    assert cached.suggest([], 1) == [{"threads": 7}]


@pytest.mark.parametrize("limits", [(), ("step_seconds <= 2",)])
def test_what_failed_in_a_source_is_not_tried_first(limits: tuple[str, ...]) -> None:
    failed = Source("b", [{"threads": threads} for threads in (7, 20, 30, 40)], [None, 4.0, 5.0, 6.0])
    search = search_for(replace(STUDY, limits=limits), PriorStudies((SOURCE, failed)))
    assert search.suggest(1) != [{"threads": 7}]


@pytest.mark.parametrize("repeats", [None, 0.4])
def test_a_search_gives_the_weights_of_its_sources(repeats: float | None) -> None:
    study = replace(STUDY, repeats=repeats)
    assert search_for(study, PriorStudies((SOURCE,))).weights() == {"a": 1, "own": 0}
    assert search_for(study).weights() == {}


def test_a_search_within_limits_weighs_no_sources() -> None:
    study = replace(STUDY, limits=("step_seconds <= 2",))
    assert search_for(study, PriorStudies((SOURCE,))).weights() == {}


def test_a_tuner_that_is_named_gets_no_sources() -> None:
    cached = SearchCache.of_tuner(RandomTuner, lambda study: PriorStudies((SOURCE,))).get(STUDY)
    assert isinstance(cached.search, PlainSearch)
    assert isinstance(cached.search.tuner, RandomTuner)


@pytest.mark.parametrize(("share", "repeats"), [(None, (0, 0)), (0.4, (1, 10))])
def test_close_rivals_are_measured_again_where_the_study_allows_it(
    share: float | None, repeats: tuple[int, int]
) -> None:
    search, rng = search_for(replace(STUDY, repeats=share)), np.random.default_rng(0)
    seen: list[object] = []
    for number in range(25):
        [configuration] = search.suggest(1)
        level = 1 + 0.0002 * (int(str(configuration["threads"])) - 20) ** 2
        measured = level * float(np.exp(0.2 * rng.standard_normal()))
        trial = Trial(configuration, TrialState.DONE, measured, f"t{number}")
        search.observe([TrialRecord(trial, "s1")])
        seen.append(configuration["threads"])
    assert repeats[0] <= len(seen) - len(set(seen)) <= repeats[1]


def test_a_search_by_name_that_learns_from_no_source_says_so() -> None:
    cache = SearchCache(search_for, lambda study: PriorStudies((SOURCE,)))
    [left] = cache.report(replace(STUDY, search="gp")).left_out
    assert (left.name, left.reason) == ("every source", "search gp learns from the study's own trials alone")
    assert cache.get(replace(STUDY, search="portfolio")).suggest([], 1) == [{"threads": 7}]
