"""Simulated trials by workers that are killed with -9 at any moment: is a trial lost, doubled or stuck?

Every back end in turn: a database, a shared folder, a server (which is killed now and then, too). A worker asks for a
trial, beats, and tells an outcome that no other could tell; what was acknowledged it writes to its own log, before it
does anything else. Workers also enqueue configurations of their own, retry trials that failed, and extend the budget.
In the end every trial must have ended, no configuration may have been handed out as two trials unless it was retried,
every acknowledged outcome, enqueued and retried trial must be stored, and the budget must be what was added to it.
"""

import argparse
import json
import multiprocessing
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from crosswind.api.app import create_app
from crosswind.api.server import listen, server_of
from crosswind.api.settings import ServerSettings
from crosswind.client.http import Server
from crosswind.client.remote_studies import RemoteStudyService
from crosswind.data.catalog.catalog import Catalog
from crosswind.data.catalog.database import open_database, sqlite_url
from crosswind.data.schema.errors import ConflictError, UnavailableError
from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.run import new_ulid
from crosswind.data.schema.trial import ENDED, Configuration, Study
from crosswind.data.store.store import Store
from crosswind.models.tuner.search.random_tuner import RandomTuner
from crosswind.models.tuner.service.catalog import CatalogStudyService
from crosswind.models.tuner.service.folder import FolderStudyService
from crosswind.models.tuner.service.service import Lease

SEARCHED = 100  # values of a that the search tries; people enqueue the others, each worker another configuration
SPACE = {"a": {"kind": "int", "low": 1, "high": SEARCHED + 20}, "b": {"kind": "int", "low": 1, "high": 100}}
BACK_ENDS = ("database", "folder", "server")
LEASE_SECONDS = 1.0
SERVER_KILLED_EVERY = 60  # workers; it takes seconds to come back
OUTLIVED_SECONDS = 300.0  # without an end of the studies, something is stuck
ENQUEUED = "enqueued"  # kinds of lines in a worker's log
RETRYING, RETRIED, EXTENDING, EXTENDED = "retrying", "retried", "extending", "extended"
StudyService = Any  # of this process or of a server: the same verbs, with records of two kinds


@dataclass(frozen=True)
class Plan:
    """Load on one back end: studies of so many trials, by so many workers, a kill about every so often."""

    back_end: str
    studies: int = 1
    trials: int = 100
    workers: int = 6
    kill_seconds: float = 0.1
    seed: int = 0


@dataclass(frozen=True)
class Outcome:
    """Outcome of a plan; the first six must be 0."""

    lost: int
    doubled: int
    stuck: int
    foreign: int
    missing: int
    miscounted: int
    trials: int
    enqueued: int
    retried: int
    extended: int
    acknowledged: int
    given_up: int
    kills: int
    seconds: float


def suffer(plan: Plan, home: Path) -> Outcome:
    """Runs the plan in an empty folder."""
    begun = time.monotonic()
    with _place(plan, home) as (open_service, kill_server):
        service = open_service()
        names = [f"chaos {number}" for number in range(plan.studies)]
        for name in names:
            service.create(Study(new_ulid(), name, SPACE, "seconds", "s", plan.seed, 1, trials_max=plan.trials))
        close(service)
        kills = _storm(plan, home, _Work(open_service, names, home / "acknowledged"), kill_server)
        service = open_service()
        records = {name: service.trials(name) for name in names}
        budgets = {name: service.status(name).study.trials_max or 0 for name in names}
        close(service)
    return _judged(plan, records, budgets, home / "acknowledged", kills=kills, seconds=time.monotonic() - begun)


@dataclass(frozen=True)
class _Work:
    """Work of one worker from birth to death."""

    open_service: Callable[[], StudyService]
    names: Sequence[str]
    logs: Path

    def __call__(self, job: str, seed: int) -> None:
        rng, service = random.Random(seed), self.open_service()
        owner = f"{job} {os.getpid()}"
        with (self.logs / f"{seed}.jsonl").open("a", encoding="utf-8") as log:
            for name in self.names:
                _enqueue(service, name, seed % 1_000_000, log)
                while not _patiently(partial(_is_over, service, name)):
                    _one(service, name, Lease(owner, LEASE_SECONDS, job), rng=rng, log=log)


def close(service: StudyService) -> None:
    """Gives back what a service holds."""
    with suppress(AttributeError):
        service._catalog.close()


def _is_over(service: StudyService, name: str) -> bool:
    return bool(service.status(name).is_exhausted)


class LowTuner(RandomTuner):
    """Random search that leaves the configurations alone which people enqueue."""

    def suggest(self, count: int) -> list[Configuration]:
        """Return the next configurations of the random order."""
        enough = 3 * (len(self._trials.taken) + count)
        drawn = self._space.random(enough, self._seed)
        return self._trials.free([values for values in drawn if int(values["a"]) <= SEARCHED])[:count]


def _enqueue(service: StudyService, name: str, birth: int, log: Any) -> None:
    """A configuration of this worker alone, where there are some left; one that is not to be begun is not doubled."""
    if birth >= 2000 or birth % 3:
        return
    configuration = {"a": SEARCHED + 1 + birth // 100, "b": 1 + birth % 100}
    request = RequestKey(new_ulid(), "enqueue")
    with suppress(ConflictError):  # the budget is used up
        [record] = _patiently(lambda: service.enqueue(name, [configuration], request=request))
        _note(log, ENQUEUED, name, record.trial.trial_id)


def _retry(service: StudyService, name: str, record: Any, log: Any) -> None:
    request = RequestKey(new_ulid(), "retry")
    _note(log, RETRYING, name, _text(record))
    with suppress(ConflictError):
        retried = _patiently(lambda: service.retry(name, record.trial.trial_id, request=request))
        _note(log, RETRIED, name, retried.trial.trial_id)


def _extend(service: StudyService, name: str, log: Any) -> None:
    request = RequestKey(new_ulid(), "extend")
    _note(log, EXTENDING, name, 1)
    _patiently(lambda: service.extend(name, trials=1, request=request))
    _note(log, EXTENDED, name, 1)


def _text(record: Any) -> str:
    return json.dumps(record.trial.configuration, sort_keys=True)


def _note(log: Any, *line: Any) -> None:
    log.write(json.dumps(line) + "\n")
    log.flush()


def _patiently(ask: Callable[[], Any]) -> Any:
    """The answer, however long the service cannot be reached."""
    while True:
        try:
            return ask()
        except UnavailableError:
            time.sleep(0.05)


def _one(service: StudyService, name: str, lease: Lease, *, rng: random.Random, log: Any) -> None:
    """One trial, from asking to telling."""
    records = _patiently(lambda: service.suggest(name, 1, lease))
    if not records:
        time.sleep(0.02)
        return
    trial_id, value, fate = records[0].trial.trial_id, rng.random(), rng.random()
    with suppress(ConflictError):
        if fate < 0.3:
            _patiently(lambda: service.heartbeat(name, trial_id, lease))
        if fate < 0.85:
            _patiently(lambda: service.complete(name, trial_id, value, owner=lease.owner, outcomes={"v": value}))
            _note(log, name, trial_id, value)
        elif fate < 0.93:
            charged = fate < 0.91
            _patiently(lambda: service.fail(name, trial_id, "as planned", owner=lease.owner, charged=charged))
            if fate < 0.89:
                _retry(service, name, records[0], log)
            elif fate < 0.9:
                _extend(service, name, log)
        else:
            _patiently(lambda: service.release(name, trial_id, owner=lease.owner, checkpoint="c"))


def _storm(plan: Plan, home: Path, work: _Work, kill_server: Callable[[], None]) -> int:
    """Starts the workers, kills them and starts others, until all studies are over. How many were killed."""
    (home / "acknowledged").mkdir()
    rng, fork = random.Random(plan.seed), multiprocessing.get_context("fork")
    kills, births, deadline = 0, 0, time.monotonic() + OUTLIVED_SECONDS * plan.studies

    def born(job: str) -> BaseProcess:
        nonlocal births
        births += 1
        process = fork.Process(target=work, args=(job, plan.seed * 1_000_000 + births), daemon=True)
        process.start()
        return process

    workers = {f"job {number}": born(f"job {number}") for number in range(plan.workers)}
    while any(process.is_alive() or process.exitcode for process in workers.values()):
        if time.monotonic() > deadline:
            break
        time.sleep(rng.uniform(0, 2 * plan.kill_seconds))
        job = rng.choice(list(workers))
        if workers[job].exitcode == 0:
            continue
        workers[job].kill()
        workers.pop(job).join()
        kills += 1
        if kills % SERVER_KILLED_EVERY == 0:
            kill_server()
        again = job if rng.random() < 0.5 else f"job {plan.workers + births}"  # requeued, or another one
        workers[again] = born(again)
    for process in workers.values():
        process.kill()
        process.join()
    return kills


def _judged(  # noqa: PLR0913 - what was planned, what is stored, what was acknowledged
    plan: Plan, records: dict[str, list[Any]], budgets: dict[str, int], logs: Path, *, kills: int, seconds: float
) -> Outcome:
    """Compares what was acknowledged with what is stored."""
    stored = {(name, record.trial.trial_id): record for name, listed in records.items() for record in listed}
    lines = [tuple(line) for path in logs.glob("*.jsonl") for line in _lines(path)]
    added = {kind: [line[1:] for line in lines if line[0] == kind] for kind in (ENQUEUED, RETRIED)}
    acknowledged = [line for line in lines if line[0] in records]
    values: dict[tuple[str, str], set[float]] = {}
    for name, trial_id, value in acknowledged:
        values.setdefault((name, trial_id), set()).add(value)
    kept = {key for key, reported in values.items() if key in stored and stored[key].trial.objective in reported}
    charged = {key: record for key, record in stored.items() if record.charged}
    configurations = Counter((name, _text(record)) for (name, _), record in charged.items())
    allowed = Counter(line[1:] for line in lines if line[0] == RETRYING)
    more = {kind: Counter(line[1] for line in lines if line[0] == kind) for kind in (EXTENDING, EXTENDED)}
    return Outcome(
        lost=len(set(values) - kept) + sum(key not in stored for keys in added.values() for key in keys),
        doubled=sum(len(reported) > 1 for reported in values.values())
        + sum(count > 1 + allowed[key] for key, count in configurations.items()),
        stuck=sum(record.trial.state not in ENDED for record in stored.values()),
        foreign=sum(record.trial.objective != (record.outcomes or {}).get("v") for record in stored.values()),
        missing=sum(budgets.values()) - len(charged),
        miscounted=sum(
            not more[EXTENDED][name] <= budget - plan.trials <= more[EXTENDING][name]
            for name, budget in budgets.items()
        ),
        trials=len(stored),
        enqueued=len(set(added[ENQUEUED])),
        retried=len(set(added[RETRIED])),
        extended=sum(budgets.values()) - plan.studies * plan.trials,
        acknowledged=len(values),
        given_up=sum("leases ran out" in (record.reason or "") for record in stored.values()),
        kills=kills,
        seconds=round(seconds, 1),
    )


def _lines(path: Path) -> Iterator[list[Any]]:
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.endswith("\n"):  # otherwise the worker was killed while it wrote
            yield json.loads(line)


@contextmanager
def _place(plan: Plan, home: Path) -> Iterator[tuple[Callable[[], StudyService], Callable[[], None]]]:
    """Yield how to open the service, and how to kill what is behind it, if anything is."""
    if plan.back_end == "server":
        with _Served(home) as served:
            yield served.service, served.kill
        return
    services: dict[str, Callable[[], StudyService]] = {
        "database": lambda: CatalogStudyService(
            Catalog(open_database(sqlite_url(home / "catalog.sqlite"))), make_tuner=LowTuner
        ),
        "folder": lambda: FolderStudyService(home / "studies", make_tuner=LowTuner),
    }
    yield services[plan.back_end], lambda: None


class _Served:
    """A server in a process of its own that can be killed, and comes back at the same address."""

    def __init__(self, home: Path) -> None:
        self._home = home
        with listen(ServerSettings(port=0)) as listening:
            self._port = int(listening.getsockname()[1])

    def __enter__(self) -> "_Served":
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def service(self) -> StudyService:
        return RemoteStudyService(Server(f"http://127.0.0.1:{self._port}"))

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._start()

    def _start(self) -> None:
        command = [sys.executable, "-m", "benchmarks.tuner_chaos", "--serve", str(self._home), str(self._port)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1])
        assert self._process.stdout
        self._process.stdout.readline()


def _serve(home: str, port: str) -> None:
    with Store.open(Path(home) / "store") as store, listen(ServerSettings(port=int(port))) as listening:
        app = create_app(store)
        app.state.client.studies = CatalogStudyService(store.catalog, make_tuner=LowTuner)
        print("ready", flush=True)
        server_of(app).run(sockets=[listening])


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.tuner_chaos", description=__doc__)
    parser.add_argument("--studies", type=int, default=4)
    parser.add_argument("--trials", type=int, default=250, help="of each study")
    parser.add_argument("--kill-seconds", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--back-end", choices=BACK_ENDS, action="append")
    asked = parser.parse_args(arguments)
    figures: dict[str, object] = {"machine": f"{platform.machine()}, Python {platform.python_version()}"}
    for back_end in asked.back_end or BACK_ENDS:
        plan = Plan(back_end, asked.studies, asked.trials, kill_seconds=asked.kill_seconds, seed=asked.seed)
        with tempfile.TemporaryDirectory(prefix="crosswind-chaos-") as home:
            outcome = suffer(plan, Path(home))
        print(f"{back_end:<9}", *(f"{name} {value}" for name, value in asdict(outcome).items()), sep="  ", flush=True)
        figures |= {f"{back_end}_{name}": value for name, value in asdict(outcome).items()}
    print(json.dumps(figures))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        _serve(*sys.argv[2:4])
    else:
        main(sys.argv[1:])
