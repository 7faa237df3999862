"""The files that pages load: ours, and the builds of Plotly.js and Swagger UI that are kept here."""

import hashlib
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable

from crosswind.data.schema.errors import NotFoundError

JAVASCRIPT = "text/javascript; charset=utf-8"
CSS = "text/css; charset=utf-8"
MEDIA_TYPES = {
    "crosswind.css": CSS,
    "crosswind.js": JAVASCRIPT,
    "overview.js": JAVASCRIPT,
    "theme.js": JAVASCRIPT,
    "predict.js": JAVASCRIPT,
    "selection.js": JAVASCRIPT,
    "run.js": JAVASCRIPT,
    "icon.svg": "image/svg+xml",
    "docs.css": CSS,
    "docs.js": JAVASCRIPT,
    "plotly-cartesian.min.js": JAVASCRIPT,
    "swagger-ui.css": CSS,
    "swagger-ui-bundle.js": JAVASCRIPT,
}
BUILDS = ("plotly", "swagger-ui")  # folders of what others made


@dataclass(frozen=True)
class Asset:
    """One file."""

    body: bytes
    media_type: str

    @cached_property
    def version(self) -> str:
        """A short name of the content, for addresses and ETags."""
        return hashlib.sha256(self.body).hexdigest()[:16]


@cache
def asset(name: str) -> Asset:
    """A file that pages may load; read once. Raises: NotFoundError."""
    if name not in MEDIA_TYPES:
        raise NotFoundError(f"static file {name[:60]!r}: expected one of {', '.join(MEDIA_TYPES)}")
    return Asset((_folder(name) / name).read_bytes(), MEDIA_TYPES[name])


def _folder(name: str) -> Traversable:
    own = files("crosswind.dashboards") / "static"
    kept = next((build for build in BUILDS if name.startswith(build)), None)
    return own / kept if kept else own
