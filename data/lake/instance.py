"""The process's one DuckDB instance: making another for each query costs 12 ms of processor time.

Views and tables that they make must be temporary: these belong to one connection in DuckDB, all others to the instance.
No content of files is kept: it could grow without bound, and would hide that a file is damaged later.
"""

import os
import threading

import duckdb

CONFIG = {"threads": 2, "autoinstall_known_extensions": False, "enable_external_file_cache": False}
_making = threading.Lock()
_made: list[duckdb.DuckDBPyConnection] = []


def new_connection() -> duckdb.DuckDBPyConnection:
    """Return a connection of its own, without views, to be closed by the caller."""
    with _making:
        if not _made:
            _made.append(duckdb.connect(":memory:", config=CONFIG))
        return _made[0].cursor()


def _begin_anew() -> None:
    """In a forked process: the instance's threads are not there."""
    global _making  # noqa: PLW0603 - it may be held by a thread that is not there either
    _making = threading.Lock()
    _left_behind.extend(_made)
    _made.clear()


_left_behind: list[duckdb.DuckDBPyConnection] = []  # closing them would wait for those threads
os.register_at_fork(after_in_child=_begin_anew)
