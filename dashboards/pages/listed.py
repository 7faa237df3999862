"""Every page, in the order of the rail."""

from crosswind.dashboards.pages import (
    checks,
    counters,
    interference,
    models,
    regressions,
    run,
    runs,
    sql,
    stragglers,
    studies,
    variability,
)
from crosswind.dashboards.pages.page import Page

LISTED: tuple[Page, ...] = (
    *(runs.PAGE, run.PAGE, variability.PAGE, stragglers.PAGE, regressions.PAGE),
    *(counters.PAGE, interference.PAGE, checks.PAGE, studies.PAGE, models.PAGE, sql.PAGE),
)
FIRST = runs.PAGE  # where the address without a path leads
