"""Tuning histories from Optuna's relational storage, when that is an SQLite file."""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.trial import History
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.clock import Clock
from crosswind.ingest.readers.searches.optuna_history import OWN_STATE, StoredStudy, StoredTrial, history_of, parsed
from crosswind.ingest.readers.searches.optuna_journal import time_of
from crosswind.ingest.readers.sqlite_file import columns_of, has_tables, opened

NEEDED = ("studies", "study_directions", "study_system_attributes", "trials", "trial_params", "trial_values")
DIRECTIONS = {"MINIMIZE": 1, "MAXIMIZE": 2}
STATES = {"RUNNING": 0, "COMPLETE": 1, "PRUNED": 2, "FAIL": 3, "WAITING": 4}
FINITE = "FINITE"


@dataclass(frozen=True)
class OptunaReader:
    """One history per study with one objective."""

    name: ClassVar[str] = "optuna"
    description: ClassVar[str] = "Optuna's storage as an SQLite file (also gzip)"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether the file is an SQLite file with Optuna's tables."""
        return has_tables(path, head, NEEDED)

    def read(self, path: Path, report: Report, context: Context) -> Iterator[History]:
        """Yield the studies in the order of their ids. Raises: MalformedError, UnavailableError.

        Source: optuna/storages/_rdb/models.py, schema version 12 and those back to Optuna 2.4.
        """
        clock = Clock(context.zone)
        with opened(path, report, NEEDED) as database:
            for study_id, name in database.execute("select study_id, study_name from studies order by study_id"):
                study = _study(database, study_id, str(name), clock)
                history = history_of(study, report, context)
                if history is not None:
                    yield history
        report.notes += clock.notes()


def _study(database: sqlite3.Connection, study_id: object, name: str, clock: Clock) -> StoredStudy:
    ask = "select direction from study_directions where study_id = ? order by objective"
    directions = [DIRECTIONS.get(str(direction), 0) for (direction,) in database.execute(ask, [study_id])]
    ask = "select value_json from study_system_attributes where study_id = ? and key = 'study:metric_names'"
    names = [parsed(text) for (text,) in database.execute(ask, [study_id])]
    trials = _trials(database, study_id)
    _add_parameters(database, study_id, trials)
    _add_values(database, study_id, trials)
    _add_own_states(database, trials)
    began = [time_of(clock, text) for (text,) in database.execute(_STARTS, [study_id])]
    created_ns = min((start_ns for start_ns in began if start_ns), default=0)
    return StoredStudy(name, directions, names[0] if names else None, created_ns, list(trials.values()))


_STARTS = "select datetime_start from trials where study_id = ? and datetime_start is not null"


def _trials(database: sqlite3.Connection, study_id: object) -> dict[object, StoredTrial]:
    ask = "select trial_id, number, state from trials where study_id = ? order by number, trial_id"
    rows = database.execute(ask, [study_id])
    return {trial_id: StoredTrial(_whole(number), STATES.get(str(state), -1)) for trial_id, number, state in rows}


def _add_parameters(database: sqlite3.Connection, study_id: object, trials: dict[object, StoredTrial]) -> None:
    ask = (
        "select p.trial_id, param_name, param_value, distribution_json from trial_params p "
        "join trials t on t.trial_id = p.trial_id where study_id = ? order by param_id"
    )
    for trial_id, name, value, distribution in database.execute(ask, [study_id]):
        if trial_id in trials:
            trials[trial_id].parameters[str(name)] = value
            trials[trial_id].distributions[str(name)] = str(distribution)


def _add_values(database: sqlite3.Connection, study_id: object, trials: dict[object, StoredTrial]) -> None:
    """Add the finite values; storages before version 3 of Optuna have no others."""
    kind = "value_type" if "value_type" in columns_of(database, "trial_values") else f"'{FINITE}'"
    ask = (
        f"select v.trial_id, value, {kind} from trial_values v "  # noqa: S608 - one of two texts of ours
        "join trials t on t.trial_id = v.trial_id where study_id = ? and objective = 0"
    )
    for trial_id, value, value_type in database.execute(ask, [study_id]):
        if trial_id in trials and value_type == FINITE:
            trials[trial_id].values = [value]


def _add_own_states(database: sqlite3.Connection, trials: dict[object, StoredTrial]) -> None:
    if not {"trial_id", "key", "value_json"} <= columns_of(database, "trial_user_attributes"):
        return
    ask = "select trial_id, value_json from trial_user_attributes where key = ?"
    for trial_id, text in database.execute(ask, [OWN_STATE]):
        if trial_id in trials:
            trials[trial_id].is_infeasible = parsed(text) == "infeasible"


def _whole(value: object) -> int:
    if not isinstance(value, int):
        raise MalformedError(f"trial number {value!r:.40}; expected a whole number")
    return value
