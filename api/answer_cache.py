"""A cache of answers about the whole store, valid until something new is stored."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Any, Concatenate, ParamSpec, TypeVar

from crosswind.data.catalog.catalog import Ingested
from crosswind.data.catalog.runs import ANY_RUN
from crosswind.data.schema.access import ALL_ROWS
from crosswind.data.store.store import Store

ANSWERS_MAX = 64  # one about thousands of nodes is some megabytes
LOCKS = 16  # questions that are computed at the same time; some of more wait for others
CHEAP_SECONDS = 1.0  # an answer that took less is computed again whenever something new is stored
PATIENCE = 10.0  # a costly one is kept so many times as long as it took, which costs a tenth of a core at most
Revision = tuple[Ingested, tuple[int, int]]  # of batches, and of the ends of runs
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class _Answer:
    """An answer, the revision of store and jobs that it rests on, and the time that it took."""

    value: Any
    revision: tuple[Revision, tuple[int, int]]
    began: float
    seconds: float


class AnswerCache:
    """Answers questions about one store, each with the same arguments once until something new is stored.

    A question is a function of the store; callers with the same one wait for one answer. An answer that has
    `keep_seconds` is kept so long, whatever is stored. `clock` returns seconds.
    """

    def __init__(self, *, patience: float = PATIENCE, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience = patience
        self._clock = clock
        self._lock = Lock()
        self._question_locks = tuple(Lock() for _ in range(LOCKS))
        self._answers: OrderedDict[Hashable, _Answer] = OrderedDict()

    def __call__(
        self, store: Store, question: Callable[Concatenate[Store, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return the answer. Raises: as the question, whose errors are not cached."""
        from crosswind.models.next_run.cases import jobs_revision  # noqa: PLC0415 - heavy

        key = key_of_question(store, question, *args, **kwargs)
        with self._question_locks[hash(key) % LOCKS]:
            revision, cached = (_revision(store), jobs_revision(store.whole)), self._cached(key)
            if cached is None or not self._is_valid(cached, revision):
                began = self._clock()
                cached = _Answer(question(store, *args, **kwargs), revision, began, self._clock() - began)
                self._keep(key, cached)
        answer: T = cached.value
        return answer

    def _is_valid(self, cached: _Answer, revision: tuple[Revision, tuple[int, int]]) -> bool:
        costs = self._patience * cached.seconds if cached.seconds >= CHEAP_SECONDS else 0.0
        age = self._clock() - cached.began - cached.seconds
        return cached.revision == revision or age < max(costs, getattr(cached.value, "keep_seconds", 0.0))

    def _cached(self, key: Hashable) -> _Answer | None:
        with self._lock:
            return self._answers.get(key)

    def _keep(self, key: Hashable, answer: _Answer) -> None:
        with self._lock:
            self._answers[key] = answer
            self._answers.move_to_end(key)
            while len(self._answers) > ANSWERS_MAX:
                self._answers.popitem(last=False)


def key_of_question(store: Store, question: Callable[..., object], *args: object, **kwargs: object) -> Hashable:
    """Return a key that is the same for the same question with the same arguments, of those who may see the same."""
    return (ALL_ROWS if store.rule.sees_all else store.rule), question, args, tuple(sorted(kwargs.items()))


def _revision(store: Store) -> Revision:
    with store.catalog.read() as session:
        return session.ingested(), session.runs.stand(ANY_RUN)
