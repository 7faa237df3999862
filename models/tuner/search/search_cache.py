"""A cache of the searches of recent studies: making a search is by far the slow part of a suggestion.

A study's records are the truth; a cached search is brought up to date with them at every suggestion. So every process
may have a cache of its own.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from crosswind.data.schema.answers.studies import SourceLeftOut, StudySources
from crosswind.data.schema.trial import Configuration, Study, Trial, TrialRecord
from crosswind.models.tuner.search.growing import GrowingSearch, parameters_of
from crosswind.models.tuner.search.search import (
    NO_PRIOR_STUDIES,
    MakeTuner,
    PlainSearch,
    PriorStudies,
    Search,
    search_for,
)

STUDIES_MAX = 8  # a space of 50,000 configurations takes tens of megabytes
FRESH_SECONDS = 600.0  # after which prior studies are looked up again
WEIGHT_DIGITS = 4
WITH_SOURCES = (None, "portfolio")  # searches by name

FindPriorStudies = Callable[[Study], PriorStudies]
MakeSearch = Callable[[Study, PriorStudies], Search]

_log = logging.getLogger("crosswind.tuner")


def no_prior_studies(study: Study) -> PriorStudies:  # noqa: ARG001 - for a service that has no other study
    """Return no prior studies."""
    return NO_PRIOR_STUDIES


@dataclass
class CachedSearch:
    """A study's search. Hold the lock from a suggestion until it is stored, so that no other thread gets the same.

    `report` says what the search learns from, in words; `weights` are those of its sources at the last suggestion.
    """

    search: Search
    report: StudySources = field(default_factory=StudySources)
    weights: Mapping[str, float] = field(default_factory=dict, init=False)
    lock: threading.RLock = field(default_factory=threading.RLock)
    _seen: dict[str, tuple[Trial, Mapping[str, float], bool]] = field(default_factory=dict, init=False)

    def suggest(self, records: Sequence[TrialRecord], count: int) -> list[Configuration]:
        """Return up to `count` configurations besides those of the study's records."""
        with self.lock:
            news = {record.trial_id: record for record in records if self._is_news(record)}
            self.search.observe(list(news.values()))
            self._seen |= {trial_id: _news(record) for trial_id, record in news.items()}
            configurations = self.search.suggest(count)
            self.weights = {name: round(weight, WEIGHT_DIGITS) for name, weight in self.search.weights().items()}
            return configurations

    def _is_news(self, record: TrialRecord) -> bool:
        return self._seen.get(record.trial_id) != _news(record)


def _news(record: TrialRecord) -> tuple[Trial, Mapping[str, float], bool]:
    return record.trial, record.outcomes, record.charged


@dataclass
class _Entry:
    """A study's place in the cache; the lock is held while a search is made."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    search: CachedSearch | None = None
    study: Study | None = None
    prior: PriorStudies = NO_PRIOR_STUDIES
    looked_up: float = 0.0


class SearchCache:
    """Makes searches and keeps those of the STUDIES_MAX studies used last; for several threads."""

    def __init__(
        self,
        make: MakeSearch = search_for,
        find_prior_studies: FindPriorStudies = no_prior_studies,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self._find_prior_studies = find_prior_studies
        self._clock = clock
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def of_tuner(cls, make_tuner: MakeTuner | None, find_prior_studies: FindPriorStudies) -> "SearchCache":
        """Return the cache of a named tuner's searches, which get no prior studies; of None, of the usual searches."""
        if make_tuner is None:
            return cls(search_for, find_prior_studies)
        from crosswind.models.tuner.space.space import Space  # noqa: PLC0415 - NumPy, see `search.py`

        return cls(lambda study, _: PlainSearch(make_tuner(Space.from_json(study.space), study.seed)))

    def get(self, study: Study) -> CachedSearch:
        """Return the study's search, a new one where the study or its prior studies have changed."""
        entry = self._entry(study.study_id)
        with entry.lock:
            now = self._clock()
            is_same = entry.study == study
            if entry.search is None or not is_same or now - entry.looked_up > FRESH_SECONDS:
                prior = self._prior_studies(study)
                if entry.search is None or not is_same or prior != entry.prior:
                    entry.search = self._search(study, prior)
                elif entry.search.report == entry.prior.report:
                    entry.search.report = prior.report  # what was left out may be other studies now
                entry.study, entry.prior, entry.looked_up = study, prior, now
            return entry.search

    def _entry(self, study_id: str) -> _Entry:
        with self._lock:
            entry = self._entries.setdefault(study_id, _Entry())
            self._entries.move_to_end(study_id)
            while len(self._entries) > STUDIES_MAX:
                self._entries.popitem(last=False)
            return entry

    def report(self, study: Study, find_prior_studies: FindPriorStudies | None = None) -> StudySources:
        """Return what the study's search will learn from, without making the search."""
        return self._prior_studies(study, find_prior_studies).report

    def _prior_studies(self, study: Study, find_prior_studies: FindPriorStudies | None = None) -> PriorStudies:
        if study.define_by_run and not parameters_of(study):
            return NO_PRIOR_STUDIES
        if study.search not in WITH_SOURCES:
            alone = SourceLeftOut("every source", f"search {study.search} learns from the study's own trials alone")
            return PriorStudies(report=StudySources(left_out=(alone,)))
        try:
            return (find_prior_studies or self._find_prior_studies)(study)
        except Exception as error:  # noqa: BLE001 - prior studies help a study and must never stop it
            _log.warning("study %s starts from nothing: earlier trials cannot be read", study.name, exc_info=True)
            left_out = SourceLeftOut("earlier trials", f"cannot be read: {error}")
            return PriorStudies(report=StudySources(left_out=(left_out,)))

    def _search(self, study: Study, prior: PriorStudies) -> CachedSearch:
        if study.define_by_run:
            return CachedSearch(GrowingSearch(study, lambda of_now: self._search(of_now, prior).search))
        if not prior.sources:
            return CachedSearch(self._make(study, prior), prior.report)
        try:
            return CachedSearch(self._make(study, prior), prior.report)
        except Exception as error:  # noqa: BLE001 - as above
            names = ", ".join(source.name for source in prior.sources)
            _log.warning("study %s starts from nothing: no use of %s", study.name, names, exc_info=True)
            unused = tuple(SourceLeftOut(source.name, f"the search cannot use it: {error}") for source in prior.sources)
            report = replace(prior.report, used=(), left_out=(*unused, *prior.report.left_out))
            return CachedSearch(self._make(study, NO_PRIOR_STUDIES), report)
