"""What earlier checks of this system measured, from a server or the store at hand; a check does not depend on it."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any
from urllib.parse import urlencode

from crosswind.cli.asking import get
from crosswind.data.errors import MalformedError, ProjectError
from crosswind.models.preflight.earlier import Earlier
from crosswind.settings import Settings

WITHOUT = "compared without earlier checks: {why}"


def history(settings: Settings, server: str | None) -> tuple[tuple[Earlier, ...], str]:
    """Earlier checks, and what there is to say where they cannot be had."""
    try:
        return (_asked(server, settings.system) if server else _at_hand(settings)), ""
    except ModuleNotFoundError as error:
        why = f"the store here needs {error.name}: pip install 'crosswind[server]', or name a --server"
        return (), WITHOUT.format(why=why)
    except (ProjectError, OSError) as error:
        return (), WITHOUT.format(why=error)


def _asked(server: str, system: str) -> tuple[Earlier, ...]:
    told = get(server, f"/v1/checks?{urlencode({'system': system})}")
    try:
        return tuple(map(_earlier, told["earlier"]))
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedError(f"{server}: answered no earlier checks: {error!r:.200}") from error


def _earlier(told: Mapping[str, Any]) -> Earlier:
    names = ("measure", "method", "hardware", "node", "device", "peer")
    at_ns, values = tuple(map(int, told["at_ns"])), tuple(map(float, told["values"]))
    if len(at_ns) != len(values) or not values or not min(values) > 0:
        raise ValueError(f"{len(values)} values at {len(at_ns)} times, expected as many, above 0")
    return Earlier(**{name: str(told[name]) for name in names}, at_ns=at_ns, values=values)


def _at_hand(settings: Settings) -> tuple[Earlier, ...]:
    """From the lake alone, which a check never makes."""
    if not (settings.home / "lake" / "set=preflight").is_dir():
        return ()
    lake = import_module("crosswind.data.lake").Lake(settings.home / "lake")
    told: tuple[Earlier, ...] = import_module("crosswind.models.preflight.history").earlier_checks(
        lake, settings.system
    )
    return told
