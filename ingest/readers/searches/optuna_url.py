"""Tuning histories from a database that Optuna reaches by URL; Optuna itself reads it, where it is installed."""

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.trial import History
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.searches.optuna_history import OWN_STATE, StoredStudy, StoredTrial, history_of

SCHEME = re.compile(r"[a-z][a-z0-9]*(\+[a-z0-9]+)?://")
PASSWORD = re.compile(r"(?<=:)[^:@/]*(?=@)")


def is_url(text: str) -> bool:
    """Return whether the text is a URL such as `postgresql+pg8000://user@host/optuna`, and not a path."""
    return SCHEME.match(text) is not None


def shown(url: str) -> str:
    """Return a path, or a URL without its password."""
    return PASSWORD.sub("***", url)


def histories_at(url: str, report: Report, context: Context) -> Iterator[History]:
    """Yield the studies of a storage in the order of their names.

    Raises: UnavailableError without Optuna, or a database that cannot be opened; MalformedError for tables that Optuna
    does not understand.
    """
    try:
        optuna = import_module("optuna")
    except ImportError as error:
        raise UnavailableError(f"{shown(url)}: needs Optuna: pip install 'crosswind[optuna]'") from error
    try:
        studies = [_study(optuna, url, name) for name in sorted(optuna.study.get_all_study_names(url))]
    except (ImportError, ValueError) as error:  # no driver, or no URL of a database
        raise UnavailableError(f"{shown(url)}: {shown(str(error))[:300]}") from error
    except (SQLAlchemyError, RuntimeError, optuna.exceptions.OptunaError) as error:  # RuntimeError: another version
        raise MalformedError(f"{shown(url)}: Optuna says: {shown(str(error))[:300]}") from error
    for study in studies:
        history = history_of(study, report, context)
        if history is not None:
            yield history


def _study(optuna: Any, url: str, name: str) -> StoredStudy:
    study = optuna.load_study(study_name=name, storage=url)
    names = study.metric_names
    began = [trial.datetime_start for trial in study.trials if trial.datetime_start]
    created_ns = round(min(began).timestamp()) * 1_000_000_000 if began else 0
    directions = [direction.value for direction in study.directions]
    return StoredStudy(name, directions, names, created_ns, [_trial(optuna, trial) for trial in study.trials])


def _trial(optuna: Any, trial: Any) -> StoredTrial:
    as_json = optuna.distributions.distribution_to_json
    return StoredTrial(
        number=trial.number,
        state=trial.state.value,
        values=list(trial.values or ()),
        parameters={name: kind.to_internal_repr(trial.params[name]) for name, kind in trial.distributions.items()},
        distributions={name: as_json(kind) for name, kind in trial.distributions.items()},
        is_infeasible=trial.user_attrs.get(OWN_STATE) == "infeasible",
    )
