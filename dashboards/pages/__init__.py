"""Pages: what they show, computed, and how that becomes HTML or JSON. A new page is one file and one line in LISTED."""

from crosswind.dashboards.pages.render import render_error

__all__ = ["render_error"]
