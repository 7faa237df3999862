"""A look at a run in progress: how far it is, its pace, what is left, and whom it waits for."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from crosswind.cli.text.waiting import waiting_words
from crosswind.client.protocol import Client
from crosswind.client.run_names import run_named
from crosswind.data.schema.answers.fields import fill_texts, text_of
from crosswind.data.schema.answers.predictions import Outcome, Quantile
from crosswind.data.schema.answers.runs import ListedRun
from crosswind.data.schema.answers.stragglers import RunStragglers
from crosswind.data.schema.answers.weather import Remaining
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.question import LikeRun
from crosswind.data.schema.run import RunState

LOW, MIDDLE, HIGH = 0.05, 0.5, 0.95
SECOND_NS = 1_000_000_000
T = TypeVar("T")


@dataclass(frozen=True)
class Span:
    """A median with its 90 % interval, seconds."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, quantiles: Sequence[Quantile]) -> "Span":
        """Return the span of a distribution."""
        level = {quantile.level: quantile.seconds for quantile in quantiles}
        return cls(level[LOW], level[MIDDLE], level[HIGH])


@dataclass(frozen=True, kw_only=True)
class Look:
    """One look. `step_seconds` is the mean of the steps that came last; `usual` what runs like it take for one.

    Whatever is not known is None; `no_forecast` says why there is none.
    """

    run: ListedRun
    at: str | None = field(default=None, metadata=text_of("at_ns"))
    at_ns: int
    newest_ns: int | None
    steps_done: int | None
    total_steps: int | None
    seconds_done: float | None
    step_seconds: float | None
    usual: Span | None
    remaining: Span | None
    ends: Span | None = field(metadata={"description": "seconds since 1970, UTC"})
    waits_for: str | None
    no_forecast: str | None

    def __post_init__(self) -> None:
        fill_texts(self)

    @property
    def pace(self) -> str:
        """The pace against what is usual."""
        if self.step_seconds is None or self.usual is None:
            return ""
        slow, fast = self.step_seconds > self.usual.high, self.step_seconds < self.usual.low
        return "slower than usual" if slow else "faster than usual" if fast else "as usual"


class Looker:
    """Looks at one run again and again."""

    def __init__(self, client: Client, run_id: str, total_steps: int | None) -> None:
        self._client = client
        self._run_id = run_id
        self._total_steps = total_steps
        self._usual: Span | None = None
        self._before = (0, 0.0)  # steps and their seconds
        self._newest: float | None = None

    def look(self) -> Look:
        """Return how the run is now. Raises: UnavailableError; NotFoundError once it is deleted."""
        run = run_named(self._client, self._run_id)
        left, reason = _or_reason(lambda: self._client.remaining(self._run_id, total_steps=self._total_steps))
        waits, _ = _or_reason(lambda: self._client.run_stragglers(self._run_id))
        now_ns = time.time_ns()
        newest_ns = waits.newest_ns if waits else None
        remaining = Span.of(left.remaining) if left and run.state is RunState.RUNNING else None
        return Look(
            run=run,
            at_ns=now_ns,
            newest_ns=newest_ns,
            steps_done=left.steps_done if left else _steps(waits),
            total_steps=left.total_steps if left else self._total_steps,
            seconds_done=left.seconds_done if left else None,
            step_seconds=self._step_seconds(left),
            usual=self._usual_step(),
            remaining=remaining,
            ends=_ends(remaining, newest_ns or now_ns),
            waits_for=_waits(waits),
            no_forecast=None if remaining or run.state is not RunState.RUNNING else reason,
        )

    def _step_seconds(self, left: Remaining | None) -> float | None:
        """Return the mean time of the steps that came last: those since an earlier look."""
        if left is not None and left.steps_done > self._before[0]:
            steps, seconds = left.steps_done - self._before[0], left.seconds_done - self._before[1]
            self._before, self._newest = (left.steps_done, left.seconds_done), seconds / steps
        return self._newest

    def _usual_step(self) -> Span | None:
        """Return what is predicted for a step of a run like it; asked until there is an answer."""
        if self._usual is None and self._newest is not None:  # before its steps, a run has the name of its command
            like = LikeRun(self._run_id)
            predicted, _ = _or_reason(lambda: self._client.predict(like, Outcome.STEP))
            self._usual = Span.of(predicted.quantiles) if predicted else None
        return self._usual


def _or_reason(ask: Callable[[], T]) -> tuple[T | None, str | None]:
    """Return an answer, or why there is none yet."""
    try:
        return ask(), None
    except (InvalidInputError, NotFoundError) as error:
        return None, str(error)


def _steps(waits: RunStragglers | None) -> int | None:
    return None if waits is None or waits.newest_step is None else waits.newest_step + 1


def _waits(waits: RunStragglers | None) -> str | None:
    if waits is None or not waits.episodes or (waits.state == RunState.RUNNING and not waits.now):
        return None
    return waiting_words(waits)


def _ends(remaining: Span | None, newest_ns: int) -> Span | None:
    if remaining is None:
        return None
    newest = newest_ns / SECOND_NS
    return Span(newest + remaining.low, newest + remaining.median, newest + remaining.high)
