"""Every page, in the order of the rail."""

from crosswind.dashboards.pages import run, runs, variability
from crosswind.dashboards.pages.page import Page

LISTED: tuple[Page, ...] = (runs.PAGE, run.PAGE, variability.PAGE)
FIRST = runs.PAGE  # where the address without a path leads
