"""Every page, in the order of the rail and of the tabs of each of its groups."""

from collections.abc import Mapping

from crosswind.dashboards.pages import sql
from crosswind.dashboards.pages.causes import counters, interference, regressions, selection, variability
from crosswind.dashboards.pages.fleet import checks, stragglers
from crosswind.dashboards.pages.page import Page
from crosswind.dashboards.pages.runs import run, runs
from crosswind.dashboards.pages.tuning import models, studies

LISTED: tuple[Page, ...] = (
    *(runs.PAGE, run.PAGE),
    *(variability.PAGE, selection.PAGE, counters.PAGE, interference.PAGE, regressions.PAGE),
    *(stragglers.PAGE, checks.PAGE),
    *(studies.PAGE, models.PAGE),
    sql.PAGE,
)
FIRST = runs.PAGE  # where the address without a path leads


def rail() -> Mapping[str, list[Page]]:
    """Return the pages that have a label, by group."""
    groups: dict[str, list[Page]] = {}
    for page in LISTED:
        if page.label:
            groups.setdefault(page.group, []).append(page)
    return groups
