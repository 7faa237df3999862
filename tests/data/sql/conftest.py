from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.api.two_users import fill

from crosswind.data.sql.limits import LIMITS, SqlLimits
from crosswind.data.sql.process import SqlProcesses
from crosswind.data.sql.statement import SqlRows, Statement, run
from crosswind.data.sql.stop import Stop
from crosswind.data.store.store import Store

Ask = Callable[..., SqlRows]


@pytest.fixture(scope="session")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The store of ann and bob."""
    with Store.open(tmp_path_factory.mktemp("two") / "store") as opened:
        fill(opened)
        yield opened


@pytest.fixture(scope="session")
def ask(two: Store) -> Ask:
    """Return what answers a statement over the whole store."""
    processes = SqlProcesses()

    def answer(query: str, parameters: object = (), *, limit: int = 1000, limits: SqlLimits = LIMITS) -> SqlRows:
        return run(two, Statement(query, parameters, limit), processes, Stop(), limits=limits)  # type: ignore[arg-type]

    return answer


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    """A file that no statement may read."""
    path = tmp_path / "secret.csv"
    path.write_text("name\ncarol\n")
    return path
