"""Explanations and answers about the whole fleet, computed once for as long as nothing new is stored."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Concatenate, ParamSpec, TypeVar

from crosswind.data.catalog.catalog import Ingested
from crosswind.data.catalog.runs import ANY_RUN
from crosswind.data.schema.run import Run
from crosswind.data.store.store import Store
from crosswind.models.explain.explain import explain_runs
from crosswind.models.explain.explanation import Explanation
from crosswind.models.next_run.cases import jobs_revision

MOST = 5000  # explanations kept; each is some kilobytes
MOST_ANSWERS = 64  # kept; one about thousands of nodes is some megabytes
AT_THE_SAME_TIME = 16  # questions; of more some wait for others
AT_ONCE_SECONDS = 1.0  # an answer that took less is made anew whenever something came new
PATIENCE = 10.0  # another is kept so many times as long as it took: a tenth of a core is spent on it at most
Stand = tuple[Ingested, tuple[int, int]]  # what is stored, and when runs ended: an explanation may change with each
P = ParamSpec("P")
T = TypeVar("T")


class ExplanationCache:
    """Explains runs of one store, each once until something is ingested."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._stand: Stand | None = None
        self._known: dict[str, Explanation] = {}

    def __call__(self, store: Store, runs: Sequence[Run]) -> Mapping[str, Explanation]:
        """An explanation of every given run, by run id."""
        stand = _stand(store)
        held = self._held(stand)
        explanations = {run.run_id: held[run.run_id] for run in runs if run.run_id in held}
        missing = [run for run in runs if run.run_id not in explanations]
        fresh = explain_runs(store, missing) if missing else {}
        self._hold(stand, fresh)
        return {**explanations, **fresh}

    def _held(self, stand: Stand) -> dict[str, Explanation]:
        with self._lock:
            if stand != self._stand or len(self._known) > MOST:
                self._stand, self._known = stand, {}
            return dict(self._known)

    def _hold(self, stand: Stand, fresh: Mapping[str, Explanation]) -> None:
        with self._lock:
            if stand == self._stand:
                self._known.update(fresh)


@dataclass(frozen=True)
class _Answer:
    """An answer, what it was made from, when that began, and how long it took."""

    value: Any
    stand: tuple[Stand, tuple[int, int]]  # and accounts of jobs
    began: float
    seconds: float


class AnswerCache:
    """Asks questions about one store, each with the same arguments once until something new is stored.

    A question is a function of the store; two who ask the same at once wait for one answer. `clock` tells seconds.
    """

    def __init__(self, *, patience: float = PATIENCE, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience = patience
        self._clock = clock
        self._lock = Lock()
        self._asking = tuple(Lock() for _ in range(AT_THE_SAME_TIME))
        self._known: OrderedDict[Hashable, _Answer] = OrderedDict()

    def __call__(
        self, store: Store, question: Callable[Concatenate[Store, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The answer. Raises: what the question raises, which is not remembered."""
        key = key_of_question(question, *args, **kwargs)
        with self._asking[hash(key) % AT_THE_SAME_TIME]:
            stand, held = _stand_with_jobs(store), self._held(key)
            if held is None or not self._is_good(held, stand):
                began = self._clock()
                held = _Answer(question(store, *args, **kwargs), stand, began, self._clock() - began)
                self._hold(key, held)
        answer: T = held.value
        return answer

    def _is_good(self, held: _Answer, stand: tuple[Stand, tuple[int, int]]) -> bool:
        is_costly = held.seconds >= AT_ONCE_SECONDS
        age = self._clock() - held.began - held.seconds
        return held.stand == stand or (is_costly and age < self._patience * held.seconds)

    def _held(self, key: Hashable) -> _Answer | None:
        with self._lock:
            return self._known.get(key)

    def _hold(self, key: Hashable, answer: _Answer) -> None:
        with self._lock:
            self._known[key] = answer
            self._known.move_to_end(key)
            while len(self._known) > MOST_ANSWERS:
                self._known.popitem(last=False)


def key_of_question(question: Callable[..., object], *args: object, **kwargs: object) -> Hashable:
    """Return what tells a question with its arguments from others."""
    return question, args, tuple(sorted(kwargs.items()))


def _stand(store: Store) -> Stand:
    with store.catalog.read() as session:
        return session.ingested(), session.runs.stand(ANY_RUN)


def _stand_with_jobs(store: Store) -> tuple[Stand, tuple[int, int]]:
    return _stand(store), jobs_revision(store)
