"""`make cluster` for real: PostgreSQL, an S3 server, two servers behind HAProxy, and Dask, as one command."""

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from benchmarks.cluster.__main__ import take
from benchmarks.many_runs import run_of
from benchmarks.segments import START_NS, write_segment
from tests.needs import lack, program

from crosswind.client.installed_store import open_store
from crosswind.data.schema.errors import UnavailableError
from crosswind.data.store.store import Store
from crosswind.ingest.ship.client import Client
from crosswind.ingest.ship.pack import pack, packings
from crosswind.ingest.ship.shipper import MEDIA, PATH
from crosswind.ingest.spool.spool import batch_id
from crosswind.settings import Settings

ROOT = Path(__file__).parents[3]
CONFIGURATION = ROOT / "deploy/haproxy.cfg"
PLACES = {f"CROSSWIND_{name}": "127.0.0.1:1" for name in ("PROXY", "SERVER_1", "SERVER_2")}
SENT, PATIENCE_SECONDS = 24, 60
TRAINED_RUNS, TRAINING_SECONDS = 400, 300
DEVICES = 6  # of the set `power` in each sweep
BEGAN, ENDED = (datetime.fromtimestamp((START_NS + more) / 1e9, UTC).strftime("%FT%TZ") for more in (0, 60 * 10**9))
SERIES = f"/v1/series?metric=power.power_0_total&node=n0&from={BEGAN}&to={ENDED}"
SPACE = {"threads": {"kind": "ordinal", "values": [1, 2, 4, 8, 16]}}


def haproxy() -> Path:
    beside = Path("/usr/sbin/haproxy")
    return beside if beside.exists() else program("haproxy", "haproxy")


def test_the_proxy_accepts_its_configuration() -> None:
    checked = subprocess.run(
        [haproxy(), "-c", "-f", CONFIGURATION],
        env={**os.environ, **PLACES, "CROSSWIND_PROXY_TOKEN": "t"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
    assert "WARNING" not in checked.stderr


def test_a_folder_of_something_else_or_of_a_running_cluster_is_refused_and_an_earlier_ones_emptied(
    tmp_path: Path,
) -> None:
    other = tmp_path / "photos"
    other.mkdir()
    (other / "cat.jpeg").touch()
    with pytest.raises(SystemExit, match=r"photos holds something else: expected an empty folder"), ExitStack() as kept:
        take(kept, other)
    folder = tmp_path / "cluster"
    with ExitStack() as kept:
        take(kept, folder)
        (folder / "postgres").mkdir()
        (folder / "environment").touch()
        with pytest.raises(SystemExit, match=r"a cluster runs in it; end it, or name another folder"):
            take(kept, folder)
    with ExitStack() as kept:
        take(kept, folder)
        assert [path.name for path in folder.iterdir()] == [".cluster"]


class Cluster:
    """A running cluster, and requests to it with its token."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.proxy: str = facts["proxy"]
        self.servers: list[dict[str, Any]] = facts["servers"]
        self.database_pid: int = facts["database_pid"]
        self.dask: str = facts["dask"]
        self.environment = dict(exports(Path(facts["environment"]).read_text()))

    @property
    def token(self) -> str:
        """Return the administrator's token."""
        return self.environment["CROSSWIND_TOKEN"]

    @contextmanager
    def store(self) -> Iterator[Store]:
        """Open the store as a program on a further machine does."""
        with mock.patch.dict(os.environ, self.environment), open_store(Settings.from_environment()) as store:
            yield store

    def verb(self, *words: str, **others: str) -> tuple[int, Any]:
        """Run a verb with the settings for another shell, or others; its exit code, and its answer for machines."""
        command = [sys.executable, "-m", "crosswind.cli.main", *words, "--json"]
        environment = {**os.environ, **self.environment, **others}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    def ask(self, path: str, body: object = None, *, url: str | None = None, key: str | None = None) -> Any:
        fields = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        fields |= {"Idempotency-Key": key} if key else {}
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(f"{url or self.proxy}{path}", data, fields)
        with urllib.request.urlopen(asked, timeout=PATIENCE_SECONDS) as answer:
            text = answer.read().decode()
        return json.loads(text) if answer.headers.get_content_type() == "application/json" else text


def exports(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and value of each line that a shell would read."""
    for line in text.splitlines():
        _, assignment = shlex.split(line)
        name, _, value = assignment.partition("=")
        yield name, value


@contextmanager
def started(folder: Path) -> Iterator[tuple[Cluster, "subprocess.Popen[str]"]]:
    command = [sys.executable, "-m", "benchmarks.cluster", "--folder", str(folder), "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            line = process.stdout.readline()
            assert line, "it ended before it was ready"
            yield Cluster(json.loads(line)), process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.wait(PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Cluster, "subprocess.Popen[str]"]]:
    if not list(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        lack("postgresql", "no program initdb")
    haproxy()
    # the user of PostgreSQL passes through, which folders of pytest refuse again whenever another pytest starts
    with tempfile.TemporaryDirectory(prefix="crosswind-cluster-") as name:
        Path(name).chmod(0o755)
        with started(Path(name) / "cluster") as cluster:
            yield cluster


@pytest.mark.thorough
def test_studies_are_made_leased_and_listed_by_whichever_server(running: Any) -> None:
    cluster, _ = running
    one, two = (server["url"] for server in cluster.servers)
    for number in range(7):
        cluster.ask("/v1/studies", {"name": f"s{number}", "objective": "seconds", "unit": "s", "space": SPACE})
    first = cluster.ask("/v1/studies?limit=3")
    names, cursor = [study["name"] for study in first["studies"]], first["next"]
    while cursor:
        part = cluster.ask(f"/v1/studies?limit=3&cursor={cursor}")
        names, cursor = names + [study["name"] for study in part["studies"]], part["next"]
    assert sorted(names) == [f"s{number}" for number in range(7)]
    suggest = "/v1/studies/s0/trials:suggest"
    mine = cluster.ask(suggest, {"owner": "a", "count": 2, "lease_seconds": 600}, url=one, key="once")["trials"]
    again = cluster.ask(suggest, {"owner": "a", "count": 2, "lease_seconds": 600}, url=two, key="once")["trials"]
    other = cluster.ask(suggest, {"owner": "b", "count": 2, "lease_seconds": 600}, url=two)["trials"]
    assert [trial["trial_id"] for trial in mine] == [trial["trial_id"] for trial in again]
    assert not {trial["trial_id"] for trial in mine} & {trial["trial_id"] for trial in other}
    ended = cluster.ask(
        f"/v1/studies/s0/trials/{mine[0]['trial_id']}:complete", {"objective": 1.5, "owner": "a"}, url=two
    )
    assert ended["state"] == "done"


@pytest.mark.thorough
def test_an_event_passes_through_the_proxy_at_once(running: Any) -> None:
    cluster, _ = running
    fields = {"Authorization": f"Bearer {cluster.token}", "Accept": "text/event-stream"}
    asked = urllib.request.Request(f"{cluster.proxy}/v1/events?kinds=study.created", None, fields)
    with urllib.request.urlopen(asked, timeout=PATIENCE_SECONDS) as stream:
        assert stream.readline().startswith(b"retry:")
        for server in cluster.servers:
            name = f"live-{server['pid']}"
            body = {"name": name, "objective": "seconds", "unit": "s", "space": SPACE}
            made = time.monotonic()
            cluster.ask("/v1/studies", body, url=server["url"])
            while name.encode() not in stream.readline():
                assert time.monotonic() - made < 20
            assert time.monotonic() - made < 10


@pytest.mark.thorough
def test_dask_answers(running: Any) -> None:
    distributed = pytest.importorskip("distributed")
    cluster, _ = running
    with distributed.Client(cluster.dask, timeout=PATIENCE_SECONDS) as client:
        assert client.submit(sum, [1, 2, 3]).result(timeout=PATIENCE_SECONDS) == 6
        assert len(client.scheduler_info()["workers"]) == 2


@pytest.mark.thorough
def test_a_model_that_one_server_trains_answers_at_both(running: Any) -> None:
    cluster, _ = running
    put_runs(cluster)
    operation = cluster.ask("/v1/models/run_seconds:train", {})
    deadline = time.monotonic() + TRAINING_SECONDS
    while operation["state"] not in ("done", "failed"):
        assert time.monotonic() < deadline, operation
        time.sleep(0.5)
        operation = cluster.ask(f"/v1/operations/{operation['operation_id']}")
    assert operation["state"] == "done", operation
    check_answers(cluster, 1)


@pytest.mark.thorough
def test_a_model_that_dask_trains_answers_at_both_servers(running: Any) -> None:
    pytest.importorskip("distributed")
    cluster, _ = running
    put_runs(cluster)
    code, operation = cluster.verb("models", "train", "run_seconds", "--cluster", cluster.dask)
    assert (code, operation["state"]) == (0, "done"), operation
    newest = cluster.verb("models", "run_seconds")[1][0]
    check_answers(cluster, newest["version"])


def put_runs(cluster: Cluster) -> None:
    """Store the runs that models are trained on."""
    with cluster.store() as store, store.catalog.write() as session:
        session.runs.put_all(map(run_of, range(TRAINED_RUNS)))


def check_answers(cluster: Cluster, version: int) -> None:
    """Promote a version, and see that both servers answer with it and alike."""
    path = f"/v1/models/run_seconds/versions/{version}:promote"
    cluster.ask(path, {"forced_because": "every run takes the same time"})
    run = run_of(1)
    asked = {"workload": run.workload, "system": run.system, "world_size": run.world_size, "outcome": "run_seconds"}
    asked |= {"configuration": dict(run.configuration)}
    one, two = (cluster.ask("/v1/predictions", asked, url=server["url"]) for server in cluster.servers)
    assert one["model"] == f"run_seconds/{version}"
    assert two == one


@pytest.mark.thorough
def test_nothing_is_lost_or_doubled_while_a_server_is_killed_and_nothing_is_left(running: Any, tmp_path: Path) -> None:
    cluster, process = running
    requests = [packed(tmp_path / str(number), number, 60 if number == 0 else 2) for number in range(SENT)]
    half = SENT // 2
    for request in requests[:half]:
        send(cluster, *request)
    for server in cluster.servers:
        assert 'route="/v1/ingest/batches"' in cluster.ask("/metrics", url=server["url"])
    before = cluster.ask(SERIES)
    killer = threading.Timer(0.2, os.kill, (cluster.servers[0]["pid"], signal.SIGKILL))
    killer.start()
    for request in requests[half:]:
        send(cluster, *request)
        time.sleep(0.05)
    killer.join()
    for request in requests:
        assert send(cluster, *request) == 200  # all were stored before
    with cluster.store() as store, store.catalog.read() as session:
        assert session.ingested().batches == SENT
    assert cluster.ask(SERIES) == before  # by the other server
    for action in ("status", "compact", "status", "verify"):
        code, answer = cluster.verb("lake", action)
        assert (code, answer["problems"]) == (0, [])
        if action == "status":
            [of_power] = [one for one in answer["sets"] if one["name"] == "power"]
            assert of_power["rows"] == DEVICES * (60 + 2 * (SENT - 1))
    assert cluster.ask(SERIES) == before
    retire_and_restore(cluster, tmp_path)
    pids = descendants(process.pid)
    assert len(pids) > 8
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_SECONDS) == 0
    assert [pid for pid in pids if is_alive(pid)] == []


def retire_and_restore(cluster: Cluster, folder: Path) -> None:
    """Retire the samples, and take the lake to another prefix by a backup that was made before."""
    assert cluster.verb("backup", str(folder / "backup.tar"))[0] == 0
    code, done = cluster.verb("lake", "retire", "--keep", "raw:1d,1m:forever")
    assert (code, done["problems"], done["retired"] > 0, done["retired"]) == (0, [], True, done["days"])
    assert cluster.verb("lake", "verify")[1]["problems"] == []
    lake = cluster.environment["CROSSWIND_LAKE"].replace("/lake?", "/restored?")
    other = {"CROSSWIND_HOME": str(folder / "restored"), "CROSSWIND_DATABASE": "", "CROSSWIND_LAKE": lake}
    assert cluster.verb("restore", str(folder / "backup.tar"), **other)[0] == 0
    for which, rows in ((other, DEVICES * (60 + 2 * (SENT - 1))), ({}, DEVICES * SENT)):
        sets = cluster.verb("lake", "status", **which)[1]["sets"]
        assert [one["rows"] for one in sets if one["name"] == "power"] == [rows]


def packed(folder: Path, number: int, sweeps: int) -> tuple[bytes, dict[str, str]]:
    """A segment as its agent sends it; a long one as it is, so that its body is large."""
    path = write_segment(folder, f"n{number}", 0, sweeps)
    coding = "identity" if sweeps > 2 else packings()[0]
    headers = {"Crosswind-Batch": batch_id(path), "Crosswind-Segment": path.name, "Content-Encoding": coding}
    return pack(path.read_bytes(), coding), headers | {"Content-Type": MEDIA}


def send(cluster: Cluster, body: bytes, headers: dict[str, str]) -> int:
    """Send until it is acknowledged, as an agent does; the last status."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        client = Client(cluster.proxy, cluster.token)
        try:
            status = client.post(PATH, body, headers).status
        except UnavailableError:
            status = 0
        finally:
            client.close()
        if status in (200, 201):
            return status
        assert time.monotonic() < deadline, status
        time.sleep(0.2)


def descendants(pid: int) -> list[int]:
    """Return the processes below a process. Source: /proc/PID/task/TID/children, proc(5)."""
    below = [int(word) for path in Path(f"/proc/{pid}/task").glob("*/children") for word in path.read_text().split()]
    return below + [deeper for child in below for deeper in descendants(child)]


def is_alive(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
