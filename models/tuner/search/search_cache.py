"""The searches of the studies that were asked last, kept from ask to ask: to make one is by far the slow part.

Nothing here is the truth: a study's records are, and a kept search is brought up to date with them at every ask. So
every process may keep its own.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from crosswind.data.schema.trial import Configuration, Study, Trial, TrialRecord
from crosswind.models.tuner.search.search import NOTHING, Earlier, MakeTuner, PlainSearch, Search, search_for
from crosswind.models.tuner.space.space import Space

KEPT = 8  # studies; a space of 50,000 configurations takes tens of megabytes
FRESH_SECONDS = 600.0  # after which what is known from before is looked up again

FindEarlier = Callable[[Study], Earlier]
MakeSearch = Callable[[Study, Earlier], Search]

_log = logging.getLogger("crosswind.tuner")


def nothing_earlier(study: Study) -> Earlier:  # noqa: ARG001 - what a service asks that knows of no other study
    """Nothing is known before the first trial."""
    return NOTHING


@dataclass
class KeptSearch:
    """A study's search; who wants what it proposes to hold until it is stored keeps the lock so long."""

    search: Search
    lock: threading.RLock = field(default_factory=threading.RLock)
    _seen: dict[str, tuple[Trial, Mapping[str, float]]] = field(default_factory=dict, init=False)

    def proposed(self, records: Sequence[TrialRecord], count: int) -> list[Configuration]:
        """Up to `count` configurations beside those of the study's records."""
        with self.lock:
            news = {record.trial.trial_id: record for record in records if self._is_news(record)}
            self.search.observe(list(news.values()))
            self._seen |= {trial_id: (record.trial, record.outcomes) for trial_id, record in news.items()}
            return self.search.suggest(count)

    def _is_news(self, record: TrialRecord) -> bool:
        return self._seen.get(record.trial.trial_id) != (record.trial, record.outcomes)


@dataclass
class _Place:
    """The place where a study's search is kept; the lock is held while one is made."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    kept: KeptSearch | None = None
    study: Study | None = None
    earlier: Earlier = NOTHING
    looked_up: float = 0.0


class SearchCache:
    """Makes searches and keeps those of the KEPT studies asked last; for several threads."""

    def __init__(
        self,
        make: MakeSearch = search_for,
        find_earlier: FindEarlier = nothing_earlier,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self._find_earlier = find_earlier
        self._clock = clock
        self._places: OrderedDict[str, _Place] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def by(cls, make_tuner: MakeTuner | None, find_earlier: FindEarlier) -> "SearchCache":
        """Those of a tuner that is named, which starts from nothing, or else of the usual ones."""
        if make_tuner is None:
            return cls(search_for, find_earlier)
        return cls(lambda study, _: PlainSearch(make_tuner(Space.from_json(study.space), study.seed)))

    def of(self, study: Study) -> KeptSearch:
        """The study's search; made anew where the study or what is known from before has changed."""
        place = self._place(study.study_id)
        with place.lock:
            now = self._clock()
            is_same = place.study == study
            if place.kept is None or not is_same or now - place.looked_up > FRESH_SECONDS:
                earlier = self._found(study)
                if place.kept is None or not is_same or earlier != place.earlier:
                    place.kept = KeptSearch(self._made(study, earlier))
                place.study, place.earlier, place.looked_up = study, earlier, now
            return place.kept

    def _place(self, study_id: str) -> _Place:
        with self._lock:
            place = self._places.setdefault(study_id, _Place())
            self._places.move_to_end(study_id)
            while len(self._places) > KEPT:
                self._places.popitem(last=False)
            return place

    def _found(self, study: Study) -> Earlier:
        try:
            return self._find_earlier(study)
        except Exception:  # noqa: BLE001 - what was measured before helps a study and must never stop it
            _log.warning("study %s starts from nothing: earlier trials cannot be read", study.name, exc_info=True)
            return NOTHING

    def _made(self, study: Study, earlier: Earlier) -> Search:
        if not earlier.sources:
            return self._make(study, earlier)
        try:
            return self._make(study, earlier)
        except Exception:  # noqa: BLE001 - as above
            names = ", ".join(source.name for source in earlier.sources)
            _log.warning("study %s starts from nothing: no use of %s", study.name, names, exc_info=True)
            return self._make(study, NOTHING)
