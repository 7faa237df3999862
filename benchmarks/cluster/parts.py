"""The parts of a cluster, each running for the time of a context."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pg8000.native

from benchmarks.cluster.process import answers, free_port, running

DEPLOY = Path(__file__).parents[2] / "deploy"
BUCKET = "crosswind"
KEYS = {"AWS_ACCESS_KEY_ID": "cluster", "AWS_SECRET_ACCESS_KEY": "cluster"}  # moto takes any


@contextmanager
def postgres(folder: Path) -> Iterator[tuple[str, int]]:
    """PostgreSQL with its data in a folder, made on first use; the URL of its database `crosswind`, and its pid."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs:
        raise SystemExit("PostgreSQL is not installed: apt-get install postgresql")
    user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name  # it refuses to run as root
    folder.mkdir(parents=True, exist_ok=True)
    shutil.chown(folder, user)
    data, port = folder / "data", free_port()
    if not (data / "PG_VERSION").exists():
        made = [str(programs[-1] / "initdb"), f"--pgdata={data}", "--auth=trust", f"--username={user}"]
        words = [*made, "--encoding=UTF8", "--locale=C"]
        subprocess.run(words, check=True, user=user, cwd="/", stdout=subprocess.DEVNULL)
    settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": "", "max_connections": 200}
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    command, log = [str(programs[-1] / "postgres"), "-D", str(data), *options], folder / "log"
    is_ready = partial(_has_database, port, user)
    with running(command, log, is_ready=is_ready, user=user, ended_by=signal.SIGINT) as pid:
        yield f"postgresql://{user}@127.0.0.1:{port}/crosswind", pid


def _has_database(port: int, user: str) -> bool:
    try:
        connection = pg8000.native.Connection(user, host="127.0.0.1", port=port, database="postgres")
    except (pg8000.native.InterfaceError, pg8000.native.DatabaseError):
        return False
    try:
        if not connection.run("select 1 from pg_database where datname = 'crosswind'"):
            connection.run("create database crosswind")
    finally:
        connection.close()
    return True


@contextmanager
def object_store(folder: Path) -> Iterator[str]:
    """An S3 server that keeps in memory what is stored, with one bucket; its URL. Its data end with it."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with running(command, folder / "log", is_ready=partial(answers, port)):
        made = urllib.request.Request(f"http://127.0.0.1:{port}/{BUCKET}", method="PUT")
        urllib.request.urlopen(made, timeout=30).close()
        yield f"http://127.0.0.1:{port}"


def lake_address(store: str) -> str:
    """Return the address of a lake in the S3 server at this URL, as CROSSWIND_LAKE has it."""
    host = store.removeprefix("http://")
    return f"s3://{BUCKET}/lake?endpoint_override={host}&scheme=http&region=us-east-1"


@contextmanager
def server(folder: Path, environment: Mapping[str, str], *words: str) -> Iterator[tuple[int, int]]:
    """One `crosswind serve`, which asks for tokens also on this machine; its port and its pid."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    command = [sys.executable, "-m", "crosswind.cli.main", "serve", "--port", str(port), "--require-token", *words]
    is_ready = partial(_is_healthy, port)
    with running(command, folder / "log", is_ready=is_ready, environment=environment) as pid:
        yield port, pid


def _is_healthy(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5).close()
    except (OSError, urllib.error.URLError):
        return False
    return True


@contextmanager
def proxy(folder: Path, port: int, servers: tuple[int, int], token: str) -> Iterator[str]:
    """HAProxy in front of two servers; its URL."""
    program = shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        raise SystemExit("HAProxy is not installed: apt-get install haproxy")
    folder.mkdir(parents=True, exist_ok=True)
    environment = {f"CROSSWIND_SERVER_{place}": f"127.0.0.1:{one}" for place, one in enumerate(servers, 1)}
    environment |= {"CROSSWIND_PROXY": f"127.0.0.1:{port}", "CROSSWIND_PROXY_TOKEN": token}
    command = [program, "-db", "-f", str(DEPLOY / "haproxy.cfg")]
    with running(command, folder / "log", is_ready=partial(_is_healthy, port), environment=environment):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def dask(
    folder: Path, *, workers: int = 2, memory: str = "2GB", environment: Mapping[str, str] | None = None
) -> Iterator[tuple[str, list[int]]]:
    """A Dask scheduler and its workers, with the settings of a store; its address, and the pids of the workers."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    address, module = f"tcp://127.0.0.1:{port}", "distributed.cli.dask_"
    scheduler = ["scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    worker = ["worker", address, "--host", "127.0.0.1", "--nthreads", "1", "--memory-limit", memory, "--no-dashboard"]
    with ExitStack() as kept:
        kept.enter_context(running(_python(module, scheduler), folder / "log", is_ready=partial(answers, port)))
        pids = []
        for place in range(workers):
            log = folder / f"worker-{place + 1}.log"
            command = _python(module, [*worker, "--local-directory", str(folder)])
            pids.append(
                kept.enter_context(
                    running(command, log, is_ready=partial(_is_registered, log), environment=environment)
                )
            )
        yield address, pids


def _python(module: str, words: list[str]) -> list[str]:
    return [sys.executable, "-m", f"{module}{words[0]}", *words[1:]]


def _is_registered(log: Path) -> bool:
    return "Registered to:" in log.read_text()
