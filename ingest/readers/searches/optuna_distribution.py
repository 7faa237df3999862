"""Optuna's distributions as our domains, and values in the form of its storages."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.trial import Parameter

WHOLE_MAX = 2**53  # up to which every whole number is a float
LISTED_MAX = 10_000  # steps that become a list of values; more are a range
NEAR = 1e-8  # of a step: the same value, as in Optuna
WHOLE = ("IntDistribution", "IntUniformDistribution", "IntLogUniformDistribution")
REAL = ("FloatDistribution", "UniformDistribution", "LogUniformDistribution", "DiscreteUniformDistribution")


@dataclass(frozen=True)
class Distribution:
    """The possible values of one parameter: whole or real numbers from low to high, or choices."""

    is_whole: bool = False
    low: float = 0.0
    high: float = 0.0
    is_log: bool = False
    step: float | None = None
    choices: tuple[Parameter, ...] | None = None

    def external(self, stored: object) -> Parameter:
        """Return the value of a stored one. Raises: MalformedError."""
        if isinstance(stored, bool) or not isinstance(stored, int | float) or not math.isfinite(stored):
            raise MalformedError(f"parameter value {stored!r:.40} is no number")
        if self.choices is not None:
            if not 0 <= int(stored) < len(self.choices):
                raise MalformedError(f"choice {stored} of {len(self.choices)}")
            return self.choices[int(stored)]
        slack = NEAR * (self.step or 0.0)
        if not self.low - slack <= stored <= self.high + slack:
            raise MalformedError(f"parameter value {stored} is not between {self.low} and {self.high}")
        return self._on_step(float(stored)) if self.step_count else int(stored) if self.is_whole else float(stored)

    @property
    def step_count(self) -> int:
        """Return the number of values; 0 for a continuous range, or very many."""
        if self.step is None or self.step <= 0 or (self.is_whole and self.step == 1):
            return 0
        count = math.floor((self.high - self.low) / self.step + NEAR) + 1
        return count if 1 <= count <= LISTED_MAX else 0

    def step_value(self, index: int) -> float:
        """Return a value of a distribution with steps as people write it: 0.3, though 0.1 + 2 * 0.1 is a bit more."""
        if self.is_whole:
            return int(self.low) + index * int(self.step or 1)
        return min(float(Decimal(str(self.low)) + index * Decimal(str(self.step))), self.high)

    def _on_step(self, stored: float) -> float:
        """Return the listed value of a stored one, whichever way its sum was rounded. Raises: MalformedError."""
        place = (stored - self.low) / (self.step or 1.0)
        if abs(place - round(place)) > NEAR or not 0 <= round(place) < self.step_count:
            raise MalformedError(f"parameter value {stored} is not {self.low} and a multiple of {self.step}")
        return self.step_value(round(place))


def distribution_of(text: str | None) -> Distribution:
    """Parse a distribution as storages write it. Raises: MalformedError.

    Source: optuna.distributions.distribution_to_json, also of the deprecated distributions of versions before 3.
    """
    try:
        document = json.loads(text or "")
        name, attributes = document["name"], document["attributes"]
        if name == "CategoricalDistribution":
            return Distribution(choices=_choices(attributes["choices"]))
        if name not in WHOLE + REAL:
            raise MalformedError(f"distribution {name!r:.40} is not known")
        is_log = bool(attributes.get("log", False)) or "LogUniform" in name
        step = attributes.get("q", attributes.get("step"))
        whole_step = 1.0 if name in WHOLE else None  # its form before there were steps
        low, high = _finite(attributes["low"]), _finite(attributes["high"])
        if not low <= high or (name in WHOLE and max(abs(low), abs(high)) > WHOLE_MAX):
            raise MalformedError(f"from {low} to {high}; expected low <= high, whole numbers up to {WHOLE_MAX}")
        return Distribution(name in WHOLE, low, high, is_log, _finite(step) if step is not None else whole_step)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise MalformedError(f"distribution {text!r:.80} is not understood") from error


def domain_of(forms: Sequence[Distribution]) -> Mapping[str, object]:
    """Return the domain of all of a parameter's distributions; Optuna lets ranges change within a study."""
    first = forms[0]
    if first.choices is not None:
        values = list(dict.fromkeys(choice for form in forms for choice in form.choices or ()))
        is_boolean = {type(value) for value in values} == {bool}
        return {"kind": "boolean"} if is_boolean else {"kind": "categorical", "values": values}
    low, high = min(form.low for form in forms), max(form.high for form in forms)
    is_log = all(form.is_log for form in forms) and low > 0
    if first.is_whole and (step := _common_step(forms)) > 1:
        return {"kind": "int", "low": int(low), "high": int(high), "log": False, "step": step}
    if all(form.step_count for form in forms):
        listed = {form.step_value(index) for form in dict.fromkeys(forms) for index in range(form.step_count)}
        return {"kind": "ordinal", "values": sorted(listed)}
    if first.is_whole:
        return {"kind": "int", "low": int(low), "high": int(high), "log": is_log}
    return {"kind": "float", "low": low, "high": high, "log": is_log}


def _choices(choices: object) -> tuple[Parameter, ...]:
    """Return the choices; as JSON texts if one is no scalar, or two are equal (1, 1.0 and true)."""
    if not isinstance(choices, list) or not choices:
        raise MalformedError(f"choices {choices!r:.80}; expected a list")
    scalars = [choice for choice in choices if isinstance(choice, str | bool | int | float) and _is_sound(choice)]
    if len(scalars) == len(choices) and len(set(scalars)) == len(scalars):
        return tuple(scalars)
    return tuple(json.dumps(choice) for choice in choices)


def _is_sound(value: str | float) -> bool:
    return isinstance(value, str) or math.isfinite(value)


def _finite(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise MalformedError(f"{value!r:.40}; expected a finite number")
    return float(value)


def _common_step(forms: Sequence[Distribution]) -> int:
    """Return the step of distributions whose values are a whole number of equal steps apart; 1 where they are not."""
    steps = {int(form.step or 1) for form in forms}
    step = next(iter(steps)) if len(steps) == 1 and not any(form.is_log for form in forms) else 1
    return step if all((form.low - forms[0].low) % step == 0 for form in forms) else 1
