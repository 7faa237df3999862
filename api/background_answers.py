"""Answers that a page waits for a moment only: what takes longer is worked out meanwhile, for who comes again."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Any, Concatenate, ParamSpec, TypeVar

from crosswind.api.answer_cache import key_of_question
from crosswind.client.local import Ask
from crosswind.data.schema.errors import UnavailableError
from crosswind.data.store.store import Store

WAIT_SECONDS = 2.0
MOST = 8  # questions that are worked out at the same time
P = ParamSpec("P")
T = TypeVar("T")


class PendingError(UnavailableError):
    """The answer is being worked out: ask again in a moment."""


@dataclass
class _Task:
    done: Event = field(default_factory=Event)
    value: Any = None
    error: BaseException | None = None


class BackgroundAnswers:
    """The same answers as those remembered, for those who do not wait longer than so many seconds."""

    def __init__(self, answers: Ask, *, wait_seconds: float = WAIT_SECONDS) -> None:
        self._answers = answers
        self._wait_seconds = wait_seconds
        self._lock = Lock()
        self._tasks: dict[Hashable, _Task] = {}

    def __call__(
        self, store: Store, question: Callable[Concatenate[Store, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The answer. Raises: PendingError while it is not known; what the question raises."""
        key = key_of_question(question, *args, **kwargs)
        with self._lock:
            task = self._tasks.get(key)
            if task is None:
                if len(self._tasks) >= MOST:
                    raise PendingError(f"{MOST} other questions are being worked out: this one comes after them")
                task = self._tasks[key] = _Task()
                work = (key, task, lambda: self._answers(store, question, *args, **kwargs))
                Thread(target=self._work, args=work, name="answer", daemon=True).start()
        if not task.done.wait(self._wait_seconds):
            raise PendingError("what this page shows is being worked out: ask again in a moment")
        if task.error is not None:
            raise task.error
        answer: T = task.value
        return answer

    def _work(self, key: Hashable, task: _Task, ask: Callable[[], object]) -> None:
        try:
            task.value = ask()
        except BaseException as error:  # noqa: BLE001 - it is raised to those who wait
            task.error = error
        with self._lock:
            del self._tasks[key]
        task.done.set()
