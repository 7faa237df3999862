"""Measurements of earlier checks of this system, from a server or the local store; a check does not depend on them."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any
from urllib.parse import urlencode

from crosswind.cli.asking import get
from crosswind.data.schema.errors import MalformedError, ProjectError
from crosswind.models.preflight.references import Earlier
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
    answer = get(server, f"/v1/checks?{urlencode({'system': system})}")
    try:
        return tuple(map(_earlier, answer["earlier"]))
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedError(f"{server}: answered no earlier checks: {error!r:.200}") from error


def _earlier(entry: Mapping[str, Any]) -> Earlier:
    names = ("measure", "method", "hardware", "node", "device", "peer")
    at_ns, values = tuple(map(int, entry["at_ns"])), tuple(map(float, entry["values"]))
    if len(at_ns) != len(values) or not values or not min(values) > 0:
        raise ValueError(f"{len(values)} values at {len(at_ns)} times, expected as many, above 0")
    return Earlier(**{name: str(entry[name]) for name in names}, at_ns=at_ns, values=values)


def _at_hand(settings: Settings) -> tuple[Earlier, ...]:
    """From the lake alone, which a check never makes."""
    if not (settings.home / "lake" / "set=preflight").is_dir():
        return ()
    lake = import_module("crosswind.data.lake.lake").Lake(settings.home / "lake")
    earlier: tuple[Earlier, ...] = import_module("crosswind.models.preflight.history").earlier_checks(
        lake, settings.system
    )
    return earlier
