"""Searches that people choose by name, and the libraries that some of them need."""

import importlib.util

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Study
from crosswind.models.tuner.study.aim import Aim

NEEDED = {"tpe": "optuna", "cma": "cmaes"}


def check_search(study: Study) -> None:
    """Refuse a search, or an end by itself, that cannot serve the study. Raises: InvalidInputError."""
    for name, word in (("search", study.search), ("stop", study.stop)):
        if word is not None and Aim.of(study).goal is not None:
            raise InvalidInputError(f"{name} is {word!r}, expected none beside limits or several objectives")
    if study.search is not None:
        check_installed(study.search)


def check_installed(search: str) -> None:
    """Refuse a search whose library is not installed. Raises: InvalidInputError that says what to install."""
    package = NEEDED.get(search)
    if package and importlib.util.find_spec(package) is None:
        raise InvalidInputError(
            f"search is {search!r}, which needs {package} where the study service runs: pip install 'crosswind[optuna]'"
        )
