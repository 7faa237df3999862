"""Measurements of earlier checks of this system; a check does not depend on them."""

from crosswind.client.connection import connect, server_address
from crosswind.data.schema.answers.checks import EarlierChecks
from crosswind.data.schema.errors import MalformedError, ProjectError
from crosswind.settings import Settings

WITHOUT = "compared without earlier checks: {why}"


def history(settings: Settings, server: str | None) -> tuple[tuple[EarlierChecks, ...], str]:
    """Return earlier checks, and a note if they cannot be read."""
    address = server_address(server)
    is_here = bool(settings.lake_address) or (settings.home / "lake" / "set=preflight").is_dir()
    if not address and not is_here:
        return (), ""  # a check creates no store
    try:
        with connect(address, settings=settings) as client:
            return _checked(client.checks(settings.system).earlier), ""
    except ModuleNotFoundError as error:
        why = f"the store here needs {error.name}: pip install 'crosswind[server]', or name a --server"
        return (), WITHOUT.format(why=why)
    except (ProjectError, OSError) as error:
        return (), WITHOUT.format(why=error)


def _checked(earlier: tuple[EarlierChecks, ...]) -> tuple[EarlierChecks, ...]:
    """Return the checks. Raises: MalformedError for values that no check measures."""
    for checks in earlier:
        if len(checks.at_ns) != len(checks.values) or not checks.values or not min(checks.values) > 0:
            counts = f"{len(checks.values)} values at {len(checks.at_ns)} times"
            raise MalformedError(f"earlier checks of {checks.node}: {counts}, expected as many, above 0")
    return earlier
