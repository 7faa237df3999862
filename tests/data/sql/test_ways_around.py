"""No statement reads a file, writes one, changes a setting, loads code, or sees what it was not handed."""

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.sql.process import SqlProcess
from crosswind.data.sql.statement import SqlRows

Ask = Callable[..., SqlRows]
READS = (
    *("from read_csv('PATH')", "from read_parquet('PATH')", "from 'PATH'", "from read_text('PATH')"),
    *("from read_json('PATH')", "from glob('PATH')", "from sniff_csv('PATH')", "from parquet_metadata('PATH')"),
    *(
        "from read_blob('PATH')",
        "from read_csv_auto('PATH')",
        "from parquet_schema('PATH')",
        "from read_ndjson('PATH')",
    ),
)
ACTS = (
    *(
        "attach 'PATH' as other",
        "copy (select 1) to 'PATH'",
        "select 1; copy (select 1) to 'PATH'",
        "copy runs from 'PATH'",
        "export database 'PATH'",
    ),
    *("import database 'PATH'", "install httpfs", "load httpfs", "pragma version", "set memory_limit = '90GB'"),
    *("set enable_external_access = true", "reset lock_configuration", "use main", "create table x as select 1"),
    *("insert into runs select * from runs", "drop table runs", "update runs set user = 'x'", "checkpoint"),
    *("call duckdb_settings()", "explain select 1", "prepare p as select 1", "select 1; select 2", "begin", ""),
    *("vacuum", "detach main", "create secret (type s3)", "set file_search_path = '/'"),
)
OTHER_TABLES = (
    *(
        "from question",
        "from connection",
        "from sys",
        "from tokens",
        "from audit",
        "from sqlite_master_",
        "from secrets",
    ),
    *("from query('from runs')", "from query_table('runs')", "from pseudonyms", "from other.runs"),
    "from json_execute_serialized_sql(json_serialize_sql('from runs'))",
)


def some(queries: Sequence[str], every_day: int) -> list[object]:
    """Return the first of the queries for every day, as each starts a process, and the others for thorough tests."""
    thorough = [pytest.param(query, marks=pytest.mark.thorough) for query in queries[every_day:]]
    return [*queries[:every_day], *thorough]


@pytest.mark.parametrize("query", some(READS, 4))
def test_no_file_is_read(ask: Ask, secret_file: Path, query: str) -> None:
    with pytest.raises(InvalidInputError, match=r"disabled by configuration|is unknown, expected one of") as refusal:
        ask(query.replace("PATH", str(secret_file)))
    assert "carol" not in str(refusal.value)


@pytest.mark.parametrize("query", some(ACTS, 3))
def test_only_one_select_is_run(ask: Ask, tmp_path: Path, query: str) -> None:
    path = tmp_path / "written"
    with pytest.raises(InvalidInputError, match=r"query: expected"):
        ask(query.replace("PATH", str(path)))
    assert not path.exists()


@pytest.mark.parametrize("query", some(OTHER_TABLES, 1))
def test_no_table_is_there_but_those_that_were_handed_over(ask: Ask, query: str) -> None:
    with pytest.raises(InvalidInputError, match=r"is unknown, expected one of|does not exist|Catalog Error"):
        ask(query)


def test_settings_are_locked(ask: Ask) -> None:
    names = "('enable_external_access', 'lock_configuration', 'temp_directory', 'python_enable_replacements')"
    rows = ask(f"select name, value from duckdb_settings() where name in {names} order by name").table.to_pylist()
    assert [(row["name"], row["value"]) for row in rows] == [
        ("enable_external_access", "false"),
        ("lock_configuration", "true"),
        ("python_enable_replacements", "false"),
        ("temp_directory", ""),
    ]


def test_the_environment_cannot_be_read(ask: Ask) -> None:
    with pytest.raises(InvalidInputError, match="getenv"):
        ask("select getenv('HOME')")


def test_the_process_has_neither_secrets_of_the_environment_nor_open_files_of_the_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CROSSWIND_TOKEN", "cw_secret")
    monkeypatch.setenv("CROSSWIND_DATABASE", "postgresql://crosswind:secret@db/crosswind")
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        process = SqlProcess()
        try:
            environment = Path(f"/proc/{process.pid}/environ").read_text()
            targets = []
            for path in Path(f"/proc/{process.pid}/fd").iterdir():
                with suppress(FileNotFoundError):  # it has just been closed
                    targets.append(str(path.readlink()))
        finally:
            process.kill()
            process.close()
    assert "secret" not in environment
    assert re.search(r"HOME|CROSSWIND", environment) is None
    assert not [target for target in targets if target.endswith("/open") or "store" in target]
