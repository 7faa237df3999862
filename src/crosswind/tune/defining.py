"""Parameters that a program names while it runs, by the names that Optuna has for them."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from zlib import crc32

import numpy as np

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Parameter
from crosswind.models.tuner.space.parameter import Domain, domain_from_json

Choice = TypeVar("Choice")
STEPS_MAX = 10_000


def float_domain(name: str, low: float, high: float, *, step: float | None, log: bool) -> Domain:
    """Return the numbers from low to high. Raises: InvalidInputError naming the parameter."""
    if step is None:
        return _domain(name, {"kind": "float", "low": low, "high": high, "log": log})
    _check_step(name, step, (high - low) / step if step > 0 else 0, log=log)
    count = int((high - low) / step + 1e-9) + 1
    return _domain(name, {"kind": "ordinal", "values": [round(low + place * step, 12) for place in range(count)]})


def int_domain(name: str, low: int, high: int, *, step: int, log: bool) -> Domain:
    """Return the whole numbers from low to high in steps. Raises: InvalidInputError naming the parameter."""
    return _domain(name, {"kind": "int", "low": low, "high": high, "log": log, "step": step})


def choice_domain(name: str, choices: Sequence[object]) -> tuple[Domain, dict[Parameter, Any]]:
    """Return the domain of choices, and the choice that each of its values stands for.

    Numbers, texts and truth values stand for themselves; None and other objects are stored as texts.
    Raises: InvalidInputError naming the parameter.
    """
    values = [choice if isinstance(choice, int | float | str) else str(choice) for choice in choices]
    domain = _domain(name, {"kind": "categorical", "values": values})
    return domain, dict(zip(values, choices, strict=True))


def drawn(domain: Domain, name: str, trial_id: str, seed: int) -> Parameter:
    """Return a random value, the same for the same trial, parameter and seed."""
    return domain.sample(np.random.default_rng([seed, crc32(trial_id.encode()), crc32(name.encode())]))


def _domain(name: str, fields: Mapping[str, object]) -> Domain:
    try:
        return domain_from_json(fields)
    except InvalidInputError as error:
        raise InvalidInputError(f"parameter {name}: {error}") from error


def _check_step(name: str, step: float, count: float, *, log: bool) -> None:
    if log:
        raise InvalidInputError(f"parameter {name}: step is {step} and log is True, expected one of them")
    if not step > 0 or count > STEPS_MAX:
        raise InvalidInputError(
            f"parameter {name}: step is {step}, expected a positive one of at most {STEPS_MAX} values"
        )
