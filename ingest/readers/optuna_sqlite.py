"""Tuning histories from Optuna's relational storage, when that is an SQLite file."""

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from crosswind.data.errors import MalformedError, UnavailableError
from crosswind.data.trial import History
from crosswind.ingest.readers.binary import Bytes, plain_bytes
from crosswind.ingest.readers.clock import Clock
from crosswind.ingest.readers.lines import GZIP_MAGIC, head_of
from crosswind.ingest.readers.optuna_history import ToldStudy, ToldTrial, history_of, parsed
from crosswind.ingest.readers.optuna_journal import time_of
from crosswind.ingest.readers.reader import Context, Report

MAGIC = b"SQLite format 3\0"
LOOKED_AT = 1 << 20  # bytes
PACKED_LIMIT = 1 << 28  # bytes, unpacked: such a file is read in memory
NEEDED = {"studies", "study_directions", "trials", "trial_params", "trial_values"}
DIRECTIONS = {"MINIMIZE": 1, "MAXIMIZE": 2}
STATES = {"RUNNING": 0, "COMPLETE": 1, "PRUNED": 2, "FAIL": 3, "WAITING": 4}
FINITE = "FINITE"


@dataclass(frozen=True)
class OptunaReader:
    """One history per study with one objective."""

    name: ClassVar[str] = "optuna"
    description: ClassVar[str] = "Optuna's storage as an SQLite file (also gzip)"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it is an SQLite file with a table of Optuna's, whose definitions stand some 90 KB into the file."""
        if not plain_bytes(head).startswith(MAGIC):
            return False
        try:
            with Bytes(path, Report(str(path), self.name)) as stream:
                return b"CREATE TABLE study_directions" in stream.take(LOOKED_AT)
        except (UnavailableError, MalformedError, OSError):
            return False

    def read(self, path: Path, report: Report, context: Context) -> Iterator[History]:
        """The studies in the order of their ids. Raises: MalformedError, UnavailableError.

        Source: optuna/storages/_rdb/models.py, schema version 12 and those back to Optuna 2.4.
        """
        try:
            with contextlib.closing(_opened(path, report)) as database:
                _check(path, database)
                for study_id, name in database.execute("select study_id, study_name from studies order by study_id"):
                    told = _study(database, study_id, str(name), Clock(context.zone))
                    history = history_of(told, report, context)
                    if history is not None:
                        yield history
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter where a message quotes damaged names
            raise MalformedError(f"{path}: SQLite says: {error}") from error


def _opened(path: Path, report: Report) -> sqlite3.Connection:
    """The database, which nothing is written to; somebody else may be writing."""
    if not head_of(path).startswith(GZIP_MAGIC):
        database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    else:
        with Bytes(path, report, limit=PACKED_LIMIT) as stream:
            content = stream.take(PACKED_LIMIT + 1)
        if not content.startswith(MAGIC):
            raise MalformedError(f"{path}: no SQLite file after unpacking")
        database = sqlite3.connect(":memory:")
        database.deserialize(content)
    database.execute("pragma trusted_schema = off")
    database.text_factory = lambda text: text.decode(errors="replace")
    return database


def _check(path: Path, database: sqlite3.Connection) -> None:
    """Refuses what only looks like a storage: a view may have any query behind it. Raises: MalformedError."""
    tables = {name for (name,) in database.execute("select name from sqlite_master where type = 'table'")}
    if lacking := sorted(NEEDED - tables):
        raise MalformedError(f"{path}: has no table {', '.join(lacking)}; expected a storage of Optuna 2.4 or later")


def _study(database: sqlite3.Connection, study_id: object, name: str, clock: Clock) -> ToldStudy:
    ask = "select direction from study_directions where study_id = ? order by objective"
    directions = [DIRECTIONS.get(str(direction), 0) for (direction,) in database.execute(ask, [study_id])]
    ask = "select value_json from study_system_attributes where study_id = ? and key = 'study:metric_names'"
    names = [parsed(text) for (text,) in database.execute(ask, [study_id])]
    trials = _trials(database, study_id)
    _add_parameters(database, study_id, trials)
    _add_values(database, study_id, trials)
    began = [time_of(clock, text) for (text,) in database.execute(_STARTS, [study_id])]
    created_ns = min((each for each in began if each), default=0)
    return ToldStudy(name, directions, names[0] if names else None, created_ns, list(trials.values()))


_STARTS = "select datetime_start from trials where study_id = ? and datetime_start is not null"


def _trials(database: sqlite3.Connection, study_id: object) -> dict[object, ToldTrial]:
    ask = "select trial_id, number, state from trials where study_id = ? order by number, trial_id"
    rows = database.execute(ask, [study_id])
    return {each: ToldTrial(_whole(number), STATES.get(str(state), -1)) for each, number, state in rows}


def _add_parameters(database: sqlite3.Connection, study_id: object, trials: dict[object, ToldTrial]) -> None:
    ask = (
        "select p.trial_id, param_name, param_value, distribution_json from trial_params p "
        "join trials t on t.trial_id = p.trial_id where study_id = ? order by param_id"
    )
    for trial_id, name, value, distribution in database.execute(ask, [study_id]):
        if trial_id in trials:
            trials[trial_id].parameters[str(name)] = value
            trials[trial_id].distributions[str(name)] = str(distribution)


def _add_values(database: sqlite3.Connection, study_id: object, trials: dict[object, ToldTrial]) -> None:
    """Values that are finite; storages before version 3 of Optuna have no others."""
    columns = {name for _, name, *_ in database.execute("pragma table_info(trial_values)")}
    kind = "value_type" if "value_type" in columns else f"'{FINITE}'"
    ask = (
        f"select v.trial_id, value, {kind} from trial_values v "  # noqa: S608 - one of two texts of ours
        "join trials t on t.trial_id = v.trial_id where study_id = ? and objective = 0"
    )
    for trial_id, value, told in database.execute(ask, [study_id]):
        if trial_id in trials and told == FINITE:
            trials[trial_id].values = [value]


def _whole(value: object) -> int:
    if not isinstance(value, int):
        raise MalformedError(f"trial number {value!r:.40}; expected a whole number")
    return value
