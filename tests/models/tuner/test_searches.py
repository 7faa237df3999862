"""SearchCache kept between asks."""

import threading
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.models.tuner.service_contract import in_threads

from crosswind.data.schema.trial import Configuration, Study, Trial, TrialRecord, TrialState
from crosswind.models.tuner.search.random_tuner import RandomTuner
from crosswind.models.tuner.search.search import Earlier, PlainSearch, Search, search_for
from crosswind.models.tuner.search.search_cache import FRESH_SECONDS, KEPT, SearchCache
from crosswind.models.tuner.search.source import Source

SPACE = {"threads": {"kind": "int", "low": 1, "high": 40}}
STUDY = Study("s1", "s", SPACE, "step_seconds", "s", 0, 1)
SOURCE = Source("a", [{"threads": threads} for threads in (7, 8, 9)], [1.0, 2.0, 3.0])


class Told:
    """A search that remembers what it is told."""

    def __init__(self) -> None:
        self.news: list[list[str]] = []

    def observe(self, records: Sequence[TrialRecord]) -> None:
        self.news.append([record.trial.trial_id for record in records])

    def suggest(self, count: int) -> list[Configuration]:
        return [{"threads": threads} for threads in range(count)]


class Made:
    """Makes searches and counts them."""

    def __init__(self) -> None:
        self.earlier: list[Earlier] = []

    def __call__(self, study: Study, earlier: Earlier) -> Search:
        self.earlier.append(earlier)
        return Told()


def record(number: int, state: TrialState = TrialState.LEASED, **outcomes: float) -> TrialRecord:
    objective = 1.0 if state is TrialState.DONE else None
    return TrialRecord(Trial({"threads": number}, state, objective, f"t{number}"), "s1", outcomes=outcomes)


def test_only_what_changed_is_observed() -> None:
    kept = SearchCache(Made()).of(STUDY)
    first, second = record(1), record(2)
    kept.proposed([first, second], 1)
    kept.proposed([replace(first, owner="other"), second], 1)
    kept.proposed([first, record(2, TrialState.DONE), record(3)], 1)
    kept.proposed([first, record(2, TrialState.DONE, power_watts=3.0), record(3)], 1)
    assert isinstance(kept.search, Told)
    assert kept.search.news == [["t1", "t2"], [], ["t2", "t3"], ["t2"]]


def test_a_search_is_made_once_until_what_it_starts_from_changes() -> None:
    now, stored, made = [0.0], [Earlier()], Made()
    searches = SearchCache(made, lambda study: stored[0], clock=lambda: now[0])
    first = searches.of(STUDY)
    stored[0] = Earlier((SOURCE,))
    now[0] = FRESH_SECONDS
    assert searches.of(STUDY) is first
    now[0] = 2 * FRESH_SECONDS + 1
    second = searches.of(STUDY)
    now[0] = 4 * FRESH_SECONDS
    assert searches.of(STUDY) is second
    assert searches.of(replace(STUDY, space={"threads": {"kind": "int", "low": 1, "high": 4}})) is not second
    assert made.earlier == [Earlier(), Earlier((SOURCE,)), Earlier((SOURCE,))]


def test_no_more_searches_are_kept_than_a_few() -> None:
    made = Made()
    searches = SearchCache(made)
    for number in range(KEPT + 1):
        searches.of(replace(STUDY, study_id=f"s{number}"))
        searches.of(replace(STUDY, study_id="s0"))
    searches.of(replace(STUDY, study_id="s1"))
    assert len(made.earlier) == KEPT + 2


def test_a_study_is_asked_though_what_was_before_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    def broken(study: Study) -> Earlier:
        raise OSError("the disk is gone")

    assert len(SearchCache(search_for, broken).of(STUDY).proposed([], 3)) == 3
    assert "earlier trials cannot be read" in caplog.text


def test_sources_that_no_tuner_can_use_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    def picky(study: Study, earlier: Earlier) -> Search:
        if earlier.sources:
            raise ValueError("a source of another kind")
        return Told()

    assert len(SearchCache(picky, lambda study: Earlier((SOURCE,))).of(STUDY).proposed([], 3)) == 3
    assert "no use of a" in caplog.text


def test_threads_that_ask_at_once_wait_for_one_search() -> None:
    made, answers, begun = Made(), [], threading.Event()

    def slow(study: Study) -> Earlier:
        begun.wait(0.2)
        return Earlier()

    searches = SearchCache(made, slow)
    in_threads(lambda: answers.append(searches.of(STUDY)), 8)
    assert len(made.earlier) == 1
    assert all(search is answers[0] for search in answers)


def test_sources_are_tried_first() -> None:
    kept = SearchCache(search_for, lambda study: Earlier((SOURCE,))).of(STUDY)
    assert kept.proposed([], 1) == [{"threads": 7}]


def test_a_tuner_that_is_named_gets_no_sources() -> None:

    kept = SearchCache.by(RandomTuner, lambda study: Earlier((SOURCE,))).of(STUDY)
    assert isinstance(kept.search, PlainSearch)
    assert isinstance(kept.search.tuner, RandomTuner)


@pytest.mark.parametrize(("details", "repeats"), [({}, (0, 0)), ({"repeats": 0.4}, (1, 10))])
def test_close_rivals_are_measured_again_where_the_study_allows_it(
    details: dict[str, object], repeats: tuple[int, int]
) -> None:
    search, rng = search_for(replace(STUDY, details=details)), np.random.default_rng(0)
    seen: list[object] = []
    for number in range(25):
        [configuration] = search.suggest(1)
        level = 1 + 0.0002 * (int(str(configuration["threads"])) - 20) ** 2
        measured = level * float(np.exp(0.2 * rng.standard_normal()))
        trial = Trial(configuration, TrialState.DONE, measured, f"t{number}")
        search.observe([TrialRecord(trial, "s1")])
        seen.append(configuration["threads"])
    assert repeats[0] <= len(seen) - len(set(seen)) <= repeats[1]
