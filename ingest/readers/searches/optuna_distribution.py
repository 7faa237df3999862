"""Optuna's distributions as domains of ours, and values in the form that its storages keep them in."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crosswind.data.errors import MalformedError
from crosswind.data.trial import Parameter

WHOLE_MAX = 2**53  # up to which every whole number is a float
LISTED_MAX = 10_000  # steps that become a list of values; more are a range
WHOLE = ("IntDistribution", "IntUniformDistribution", "IntLogUniformDistribution")
REAL = ("FloatDistribution", "UniformDistribution", "LogUniformDistribution", "DiscreteUniformDistribution")


@dataclass(frozen=True)
class Distribution:
    """What values one parameter may have: whole or real numbers from low to high, or the choices."""

    is_whole: bool = False
    low: float = 0.0
    high: float = 0.0
    is_log: bool = False
    step: float | None = None
    choices: tuple[Parameter, ...] | None = None

    def external(self, stored: object) -> Parameter:
        """The value that a stored one stands for. Raises: MalformedError."""
        if isinstance(stored, bool) or not isinstance(stored, int | float) or not math.isfinite(stored):
            raise MalformedError(f"parameter value {stored!r:.40} is no number")
        if self.choices is not None:
            if not 0 <= int(stored) < len(self.choices):
                raise MalformedError(f"choice {stored} of {len(self.choices)}")
            return self.choices[int(stored)]
        if not self.low <= stored <= self.high:
            raise MalformedError(f"parameter value {stored} is not between {self.low} and {self.high}")
        return int(stored) if self.is_whole else float(stored)


def distribution_of(text: str | None) -> Distribution:
    """A distribution as storages write it. Raises: MalformedError.

    Source: optuna.distributions.distribution_to_json, also of the deprecated distributions of versions before 3.
    """
    try:
        told = json.loads(text or "")
        name, attributes = told["name"], told["attributes"]
        if name == "CategoricalDistribution":
            return Distribution(choices=_choices(attributes["choices"]))
        if name not in WHOLE + REAL:
            raise MalformedError(f"distribution {name!r:.40} is not known")
        is_log = bool(attributes.get("log", False)) or "LogUniform" in name
        step = attributes.get("q", attributes.get("step"))
        whole_step = 1.0 if name in WHOLE else None  # what it was before there were steps
        low, high = _finite(attributes["low"]), _finite(attributes["high"])
        if not low <= high or (name in WHOLE and max(abs(low), abs(high)) > WHOLE_MAX):
            raise MalformedError(f"from {low} to {high}; expected low <= high, whole numbers up to {WHOLE_MAX}")
        return Distribution(name in WHOLE, low, high, is_log, _finite(step) if step is not None else whole_step)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise MalformedError(f"distribution {text!r:.80} is not understood") from error


def domain_of(told: Sequence[Distribution]) -> Mapping[str, object]:
    """The domain of everything that a parameter's distributions allow; Optuna lets ranges change within a study."""
    first = told[0]
    if first.choices is not None:
        values = list(dict.fromkeys(choice for each in told for choice in each.choices or ()))
        is_boolean = {type(value) for value in values} == {bool}
        return {"kind": "boolean"} if is_boolean else {"kind": "categorical", "values": values}
    low, high = min(each.low for each in told), max(each.high for each in told)
    is_log = all(each.is_log for each in told) and low > 0
    if all(_steps(each) for each in told):
        return {"kind": "ordinal", "values": sorted({value for each in told for value in _steps(each)})}
    if first.is_whole:
        return {"kind": "int", "low": int(low), "high": int(high), "log": is_log}
    return {"kind": "float", "low": low, "high": high, "log": is_log}


def _steps(each: Distribution) -> list[float]:
    """The values of a distribution with steps; none where every number counts, or there are very many."""
    if each.step is None or each.step <= 0 or (each.is_whole and each.step == 1):
        return []
    count = math.floor((each.high - each.low) / each.step + 1e-8) + 1
    if not 1 <= count <= LISTED_MAX:
        return []
    values = [each.low + index * each.step for index in range(count)]
    return [int(value) for value in values] if each.is_whole else values


def _choices(told: object) -> tuple[Parameter, ...]:
    """The choices; as JSON texts where one is no scalar, or two count as one (1, 1.0 and true)."""
    if not isinstance(told, list) or not told:
        raise MalformedError(f"choices {told!r:.80}; expected a list")
    scalars = [each for each in told if isinstance(each, str | bool | int | float) and _is_sound(each)]
    if len(scalars) == len(told) and len(set(scalars)) == len(scalars):
        return tuple(scalars)
    return tuple(json.dumps(each) for each in told)


def _is_sound(value: str | float) -> bool:
    return isinstance(value, str) or math.isfinite(value)


def _finite(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise MalformedError(f"{value!r:.40}; expected a finite number")
    return float(value)
