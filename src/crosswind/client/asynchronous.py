"""The clients for coroutines: every method of `Client` as one that is awaited."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from functools import cached_property, wraps
from itertools import islice
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from crosswind.client.cohorts import Cohorts
from crosswind.client.fleet import Fleet
from crosswind.client.own_rows import OwnRows
from crosswind.client.protocol import Client
from crosswind.client.sql import Sql
from crosswind.client.threads import Threads
from crosswind.ingest.ship.call import GivingUp
from crosswind.models.tuner.service.service import StudyService

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S")


class Asynchronous(Generic[S]):
    """A client, or a part of one, whose methods run in threads."""

    def __init__(self, subject: Callable[[], S], threads: Threads) -> None:
        self._subject = subject  # to be called in one of the threads
        self._threads = threads

    async def ask(self, question: Callable[[S], T]) -> T:
        """Return the answer of a function to which the client, or the part, is passed; several requests may be in it.

        A cancelled question ends its request at once. Of a store of this machine, what has begun is finished unheard.
        """
        return await self._threads.run(lambda: question(self._subject()))


def awaited(
    method: Callable[Concatenate[S, P], T],
) -> Callable[Concatenate[Asynchronous[S], P], Coroutine[Any, Any, T]]:
    """Return the method as one that is awaited, with the same parameters and answer."""

    @wraps(method)
    async def asked(self: Asynchronous[S], /, *arguments: P.args, **options: P.kwargs) -> T:
        answer: T = await self.ask(lambda subject: getattr(subject, method.__name__)(*arguments, **options))
        return answer

    return asked


def iterated(
    method: Callable[Concatenate[S, P], Iterator[T]],
) -> Callable[Concatenate[Asynchronous[S], P], AsyncGenerator[T, None]]:
    """Return the method as one whose items are awaited, `async for`; whoever leaves the loop ends its request."""

    @wraps(method)
    async def items(self: Asynchronous[S], /, *arguments: P.args, **options: P.kwargs) -> AsyncGenerator[T, None]:
        giving_up = GivingUp()
        source = await self.ask(lambda subject: iter(getattr(subject, method.__name__)(*arguments, **options)))
        try:
            while item := await self._threads.run(lambda: list(islice(source, 1)), giving_up):
                yield item[0]
        finally:
            giving_up.set()

    return items


class AsyncStudies(Asynchronous[StudyService]):
    """`StudyService` for coroutines."""

    create = awaited(StudyService.create)
    extend = awaited(StudyService.extend)
    pause = awaited(StudyService.pause)
    resume = awaited(StudyService.resume)
    stop = awaited(StudyService.stop)
    rename = awaited(StudyService.rename)
    delete = awaited(StudyService.delete)
    enqueue = awaited(StudyService.enqueue)
    retry = awaited(StudyService.retry)
    studies = awaited(StudyService.studies)
    suggest = awaited(StudyService.suggest)
    heartbeat = awaited(StudyService.heartbeat)
    release = awaited(StudyService.release)
    complete = awaited(StudyService.complete)
    fail = awaited(StudyService.fail)
    define = awaited(StudyService.define)
    report = awaited(StudyService.report)
    reports = awaited(StudyService.reports)
    trials = awaited(StudyService.trials)
    trial = awaited(StudyService.trial)
    status = awaited(StudyService.status)
    best = awaited(StudyService.best)


class AsyncRows(Asynchronous[OwnRows]):
    """`OwnRows` for coroutines."""

    share_run = awaited(OwnRows.share_run)
    share_study = awaited(OwnRows.share_study)
    delete_run = awaited(OwnRows.delete_run)
    export_run = awaited(OwnRows.export_run)
    reveal = awaited(OwnRows.reveal)
    audit = awaited(OwnRows.audit)


class AsyncSql(Asynchronous[Sql]):
    """`Sql` for coroutines."""

    __call__ = awaited(Sql.__call__)
    tables = awaited(Sql.tables)


class AsyncFleet(Asynchronous[Fleet]):
    """`Fleet` for coroutines."""

    metrics = awaited(Fleet.metrics)
    series = awaited(Fleet.series)
    systems = awaited(Fleet.systems)
    system = awaited(Fleet.system)
    node = awaited(Fleet.node)
    node_history = awaited(Fleet.node_history)


class AsyncCohorts(Asynchronous[Cohorts]):
    """`Cohorts` for coroutines."""

    create = awaited(Cohorts.create)
    list = awaited(Cohorts.list)
    get = awaited(Cohorts.get)
    runs = awaited(Cohorts.runs)
    compare = awaited(Cohorts.compare)
    share = awaited(Cohorts.share)
    delete = awaited(Cohorts.delete)


class AsyncClient(Asynchronous[Client]):
    """`Client` for coroutines of asyncio or trio; an asynchronous context manager.

    `opened` makes the client that answers, when it is first asked; up to `connections` questions are asked at once.
    """

    runs = awaited(Client.runs)
    run_outcomes = awaited(Client.run_outcomes)
    run_report = awaited(Client.run_report)
    jobs = awaited(Client.jobs)
    job = awaited(Client.job)
    nodes = awaited(Client.nodes)
    predict = awaited(Client.predict)
    advise_walltime = awaited(Client.advise_walltime)
    advise_scaling = awaited(Client.advise_scaling)
    remaining = awaited(Client.remaining)
    batch_shares = awaited(Client.batch_shares)
    explain = awaited(Client.explain)
    waits = awaited(Client.waits)
    compare = awaited(Client.compare)
    stragglers = awaited(Client.stragglers)
    run_stragglers = awaited(Client.run_stragglers)
    replay = awaited(Client.replay)
    trace = awaited(Client.trace)
    trace_diff = awaited(Client.trace_diff)
    traced_runs = awaited(Client.traced_runs)
    regressions = awaited(Client.regressions)
    weather = awaited(Client.weather)
    counters = awaited(Client.counters)
    interference = awaited(Client.interference)
    checks = awaited(Client.checks)
    disturbance = awaited(Client.disturbance)
    events = iterated(Client.events)

    def __init__(self, opened: Callable[[], Client], connections: int) -> None:
        super().__init__(self._client, Threads(connections))
        self._open = opened
        self._opened: Client | None = None
        self._lock = threading.Lock()

    @cached_property
    def studies(self) -> AsyncStudies:
        """The service that hands out the trials of studies."""
        return AsyncStudies(lambda: self._client().studies, self._threads)

    @cached_property
    def own(self) -> AsyncRows:
        """The acts on rows that are one's own."""
        return AsyncRows(lambda: self._client().own, self._threads)

    @cached_property
    def sql(self) -> AsyncSql:
        """SQL over the rows that may be seen."""
        return AsyncSql(lambda: self._client().sql, self._threads)

    @cached_property
    def fleet(self) -> AsyncFleet:
        """The questions about systems, their nodes and stored metrics."""
        return AsyncFleet(lambda: self._client().fleet, self._threads)

    @cached_property
    def cohorts(self) -> AsyncCohorts:
        """Saved selections of runs."""
        return AsyncCohorts(lambda: self._client().cohorts, self._threads)

    async def close(self) -> None:
        """Give back what it holds open."""
        self._threads.close()
        if self._opened:
            self._opened.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _client(self) -> Client:
        with self._lock:
            if self._opened is None:
                self._opened = self._open()
            return self._opened
