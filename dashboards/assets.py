"""The files that pages load: ours, and the builds of Plotly.js and Swagger UI that are kept here."""

import gzip
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
    "waiting.js": JAVASCRIPT,
    "icon.svg": "image/svg+xml",
    "docs.css": CSS,
    "docs.js": JAVASCRIPT,
    "plotly-cartesian.min.js": JAVASCRIPT,
    "swagger-ui.css": CSS,
    "swagger-ui-bundle.js": JAVASCRIPT,
}
BUILDS = ("plotly", "swagger-ui")  # folders of what others made
ZIPPED = ("plotly-cartesian.min.js",)  # kept as gzip, packed once and for all with more work than a server has time for


@dataclass(frozen=True)
class Asset:
    """One file, with its content as gzip where it is kept so."""

    body: bytes
    media_type: str
    zipped: bytes | None = None

    @cached_property
    def version(self) -> str:
        """A short name of the content, for addresses and ETags."""
        return hashlib.sha256(self.body).hexdigest()[:16]


@cache
def asset(name: str) -> Asset:
    """A file that pages may load; read once. Raises: NotFoundError."""
    if name not in MEDIA_TYPES:
        raise NotFoundError(f"static file {name[:60]!r}: expected one of {', '.join(MEDIA_TYPES)}")
    media_type = MEDIA_TYPES[name]
    if name not in ZIPPED:
        return Asset((_folder(name) / name).read_bytes(), media_type)
    zipped = (_folder(name) / f"{name}.gz").read_bytes()
    return Asset(gzip.decompress(zipped), media_type, zipped)


def _folder(name: str) -> Traversable:
    own = files("crosswind.dashboards") / "static"
    kept = next((build for build in BUILDS if name.startswith(build)), None)
    return own / kept if kept else own
