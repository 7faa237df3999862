import gc
import os
import signal
import socket
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatch
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import settings
from sqlalchemy import create_engine, text
from tests.ingest.trees import UNPACKED
from tests.needs import skipped_for_want
from tests.postgres import postgres

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.catalog.database import open_database, sqlite_url

# The same examples in every run, so that a change alone turns a test red; --hypothesis-profile=search looks for others.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile("steady")

# What one server, cluster or training serves goes to one process; every other file is a group of its own.
GROUPS = {
    "slurm": ("*on_real_slurm.py",),
    "server": ("tests/cli/test_predict.py", "tests/cli/test_remaining.py", "tests/cli/test_walltime.py"),
    "adapters": ("tests/ingest/probe/adapters/*",),
    "openapi": ("tests/api/openapi/*",),
    "demo": ("tests/end_to_end/test_demo.py",),
    "pages": ("tests/end_to_end/*",),  # one browser, and one store of samples
    "injected": ("tests/ingest/injected/*",),
    "lab": ("tests/ingest/lab/*", "tests/cli/test_lab.py"),  # one laboratory at a time has the machine
}
# What takes longest begins first, so that no core is idle at the end.
FIRST = ("slurm", "demo", "adapters", "injected", "pages", "lab", "openapi", "server")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Give `__main__` the attribute that spawning a process reads: in pytest-xdist's processes it gets lost."""
    vars(sys.modules["__main__"]).setdefault("__spec__", None)


@pytest.fixture(scope="session", autouse=True)
def one_loop() -> Iterator[None]:
    """Give all clients of applications one event loop, instead of a loop and its threads for each request."""
    if "starlette.testclient" in sys.modules:
        with start_blocking_portal() as portal:
            sys.modules["starlette.testclient"].TestClient.portal = portal
            yield
            sys.modules["starlette.testclient"].TestClient.portal = None
    else:
        yield


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL, without a database, of a PostgreSQL server that lives as long as the tests."""
    with postgres(free_port()) as server:
        yield server.url


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of an empty PostgreSQL database."""
    with postgres_database(postgres_server) as url:
        yield url


@pytest.fixture(scope="module")
def lasting_postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of an empty PostgreSQL database, for all tests of a file."""
    with postgres_database(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def postgres_tables(postgres_server: str) -> Iterator[str]:
    """The name of a database with the tables of a catalog, to be copied."""
    with postgres_database(postgres_server) as url:
        open_database(url).dispose()
        yield url.rpartition("/")[2]


@contextmanager
def postgres_database(postgres_server: str, copied: str = "template1") -> Iterator[str]:
    name = f"test_{uuid.uuid4().hex}"
    url = f"{postgres_server}/postgres".replace("postgresql:", "postgresql+pg8000:")
    engine = create_engine(url, isolation_level="AUTOCOMMIT", connect_args={"ssl_context": False})
    with engine.connect() as connection:
        connection.execute(text(f"create database {name} template {copied}"))
        yield f"{postgres_server}/{name}"
        connection.execute(text(f"drop database {name} with (force)"))
    engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    """An empty catalog, once in each database."""
    with ExitStack() as kept:
        if request.param == "sqlite":
            url = sqlite_url(tmp_path / "catalog.sqlite")
        else:
            server, tables = map(request.getfixturevalue, ("postgres_server", "postgres_tables"))
            url = kept.enter_context(postgres_database(server, tables))
        opened = Catalog(open_database(url))
        yield opened
        opened.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def pytest_configure() -> None:
    """Let Ctrl-C end what the tests start, also where a shell that runs them in the background has it ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # until the tests are collected, as hardly anything of that goes: a fifth of the time


def pytest_unconfigure() -> None:
    UNPACKED.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest."""
    order = {name: number for number, name in enumerate(FIRST)}
    items.sort(key=lambda item: order.get(group_of(item.nodeid), len(FIRST)))


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what stays until the end, thousands of tests and their modules."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep what shares a fixture in one process, in the order above."""
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 - where tests run in one process it is not needed

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return ByGroup(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Stop as interrupted where a process of the tests died: what it had yet to run may not have run at all."""
    if error:
        node.config.pluginmanager.getplugin("dsession").shouldstop = f"{node.gateway.id} died: {error}"


def group_of(nodeid: str) -> str:
    """The group of a test: one of GROUPS, or its file."""
    file = nodeid.partition("::")[0]
    return next((name for name, files in GROUPS.items() if any(fnmatch(file, pattern) for pattern in files)), file)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line on what was skipped for lack of what; `make test` prints it once for all of its phases.

    In each phase it prints what took longest instead.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        return  # who started this process counts them too
    reasons = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", [])]
    if file := os.environ.get("CROSSWIND_SKIPS"):
        with Path(file).open("a") as lines:
            lines.writelines(f"{reason!r}\n" for reason in reasons)
        terminalreporter.write_line(longest(terminalreporter))
    elif line := skipped_for_want(reasons):
        terminalreporter.write_line(line, yellow=True)


def longest(terminalreporter: pytest.TerminalReporter) -> str:
    """Return one line on the groups of tests that took longest."""
    seconds: Counter[str] = Counter()
    for report in chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            seconds[group_of(report.nodeid)] += report.duration  # type: ignore[assignment]
    return "Longest: " + ", ".join(f"{group} {taken:.0f} s" for group, taken in seconds.most_common(8))
