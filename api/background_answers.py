"""Answers that a page waits for only briefly: a slow one is computed in the background, for the next request."""

import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import partial
from threading import Lock, Semaphore, Thread
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from crosswind.api.answer_cache import key_of_question
from crosswind.api.workers import AT_ONCE
from crosswind.client.compute import Compute, explain_anew
from crosswind.client.local import Local
from crosswind.data.schema.access import RowRule
from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.run import Run
from crosswind.data.store.store import Store

if TYPE_CHECKING:
    from crosswind.data.schema.answers.explanations import Explanation

WAIT_SECONDS = 0.25  # by then a page says that it waits
PROMISED_SECONDS = 5.0  # longer than a page that waits leaves between two requests
QUESTIONS_MAX = 8  # computed, or next in turn
P = ParamSpec("P")
T = TypeVar("T")


class PendingError(UnavailableError):
    """The answer is being computed: request it again in a moment."""


class BackgroundAnswers:
    """Answers of another `Compute`, for callers that wait so many seconds at most.

    An answer that a caller was sent away for is kept some seconds, whatever is stored meanwhile: on a busy server the
    same caller would otherwise wait for a new one each time. `clock` returns seconds.
    """

    def __init__(
        self,
        compute: Compute,
        *,
        wait_seconds: float = WAIT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._compute = compute
        self._wait_seconds = wait_seconds
        self._clock = clock
        self._lock = Lock()
        self._turn = Semaphore(AT_ONCE)
        self._futures: dict[Hashable, Future[Any]] = {}
        self._promised: dict[Hashable, tuple[Future[Any], float]] = {}

    def __call__(
        self, store: Store, question: Callable[Concatenate[Store, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return the answer. Raises: PendingError while it is being computed; as the question."""
        key = key_of_question(store, question, *args, **kwargs)
        future = self._begun(key, partial(self._compute, store, question, *args, **kwargs))
        if not wait([future], self._wait_seconds).done:
            with self._lock:
                self._promised[key] = future, self._clock()
            raise PendingError("this page is being computed: try again in a moment")
        answer: T = future.result()
        return answer

    def _begun(self, key: Hashable, task: Callable[[], object]) -> Future[Any]:
        """Return the future of a task in progress, after starting it in a thread unless one with this key runs."""
        with self._lock:
            if promised := self._kept(key):
                return promised
            if key not in self._futures:
                if len(self._futures) >= QUESTIONS_MAX:
                    raise PendingError(f"{QUESTIONS_MAX} other pages are being computed: this one comes after them")
                self._futures[key] = Future()
                Thread(target=self._work, args=(key, task), name="answer", daemon=True).start()
            return self._futures[key]

    def _kept(self, key: Hashable) -> Future[Any] | None:
        """Return the future of an answer that a caller was sent away for a moment ago; forget older ones."""
        oldest = self._clock() - PROMISED_SECONDS
        self._promised = {key: one for key, one in self._promised.items() if one[1] > oldest}
        return self._promised[key][0] if key in self._promised else None

    def _work(self, key: Hashable, task: Callable[[], object]) -> None:
        try:
            with self._turn:
                answer = task()
        except BaseException as error:  # noqa: BLE001 - the waiting callers raise it
            self._ended(key).set_exception(error)
        else:
            self._ended(key).set_result(answer)

    def _ended(self, key: Hashable) -> Future[Any]:
        with self._lock:
            return self._futures.pop(key)


def client_for_pages(client: Local) -> Local:
    """Return a client whose answers, and explanations that are not stored, are computed in the background.

    Explanations are stored one after the other: a page that is asked for again lacks fewer, and waits for those that
    it asked for at first.
    """
    pages = client.with_compute(BackgroundAnswers(client.compute))
    questions: deque[tuple[RowRule, tuple[str, ...]]] = deque(maxlen=QUESTIONS_MAX)

    def explain(store: Store, runs: Sequence[Run]) -> Mapping[str, "Explanation"]:
        from crosswind.models.explain.stored import stored_explanations  # noqa: PLC0415 - heavy

        stored = stored_explanations(store.whole, [run.run_id for run in runs])
        missing = tuple(run.run_id for run in runs if run.run_id not in stored)
        if not missing:
            return stored
        asked = [run_ids for rule, run_ids in questions if rule == store.rule and set(missing) <= set(run_ids)]
        if not asked:
            questions.append((store.rule, missing))
        explanations = pages.compute(store, _explained, asked[0] if asked else missing)
        return stored | {run_id: explanations[run_id] for run_id in missing}

    pages.explain_runs = explain
    return pages


def _explained(store: Store, run_ids: tuple[str, ...]) -> Mapping[str, "Explanation"]:
    with store.catalog.read() as session:
        runs = session.runs.some(run_ids)
    return explain_anew(store, runs)
