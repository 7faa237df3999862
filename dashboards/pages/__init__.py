"""Pages: their contents, computed, and their rendering as HTML and JSON. A new page is one file, one line in LISTED."""

from crosswind.dashboards.pages.render import render_error

__all__ = ["render_error"]
