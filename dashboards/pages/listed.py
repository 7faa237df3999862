"""Every page, in the order of the rail and of the tabs of each of its groups."""

from collections.abc import Mapping

from crosswind.dashboards.pages import sql
from crosswind.dashboards.pages.causes import counters, interference, regressions, selection, variability
from crosswind.dashboards.pages.fleet import checks, data, energy, links, stragglers
from crosswind.dashboards.pages.overview import overview
from crosswind.dashboards.pages.page import Page
from crosswind.dashboards.pages.predict import predict
from crosswind.dashboards.pages.runs import compare, run, runs, trace
from crosswind.dashboards.pages.tuning import models, studies

LISTED: tuple[Page, ...] = (
    overview.PAGE,
    *(runs.PAGE, run.PAGE, trace.PAGE, compare.PAGE),
    predict.PAGE,
    *(variability.PAGE, selection.PAGE, counters.PAGE, interference.PAGE, regressions.PAGE),
    *(stragglers.PAGE, checks.PAGE, links.PAGE, energy.PAGE, data.PAGE),
    *(studies.PAGE, models.PAGE),
    sql.PAGE,
)


def rail() -> Mapping[str, list[Page]]:
    """Return the pages that have a label, by group."""
    groups: dict[str, list[Page]] = {}
    for page in LISTED:
        if page.label:
            groups.setdefault(page.group, []).append(page)
    return groups
