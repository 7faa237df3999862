import os
import re
from pathlib import Path

import crosswind
from crosswind.data.lake.instance import new_connection

ROOMS = ("data", "ingest", "models", "api", "dashboards")
OF_ALL = re.compile(r"execute\(\s*f?\"create (or replace )?(view|table)\b")


def test_a_temporary_view_is_of_one_connection() -> None:
    with new_connection() as one, new_connection() as other:
        one.execute("create temp view v as select 1")
        other.execute("create temp view v as select 2")
        assert (one.execute("from v").fetchall(), other.execute("from v").fetchall()) == ([(1,)], [(2,)])


def test_a_forked_process_can_query() -> None:
    with new_connection() as connection:
        connection.execute("select sum(range) from range(1000000)")
    pid = os.fork()
    if not pid:
        with new_connection() as connection:
            total = connection.execute("select sum(range) from range(1000000)").fetchall()
        os._exit(total != [(499999500000,)])
    assert os.waitpid(pid, 0)[1] == 0


def test_nothing_makes_views_or_tables_that_all_connections_would_see() -> None:
    home = Path(crosswind.__file__).parent
    paths = [path for room in ROOMS for path in (home / room).resolve().rglob("*.py")]
    assert len(paths) > 400
    assert [path.name for path in paths if OF_ALL.search(path.read_text())] == []
