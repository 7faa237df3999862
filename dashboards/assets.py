"""The files that pages load: ours, and Plotly.js out of the installed package."""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

from crosswind.data.schema.errors import NotFoundError

JAVASCRIPT = "text/javascript; charset=utf-8"
MEDIA_TYPES = {
    "crosswind.css": "text/css; charset=utf-8",
    "crosswind.js": JAVASCRIPT,
    "theme.js": JAVASCRIPT,
    "icon.svg": "image/svg+xml",
    "plotly.min.js": JAVASCRIPT,
}


@dataclass(frozen=True)
class Asset:
    """One file, plain and compressed."""

    body: bytes
    media_type: str

    @cached_property
    def packed(self) -> bytes:
        """The body, gzipped once."""
        return gzip.compress(self.body, 6, mtime=0)

    @cached_property
    def version(self) -> str:
        """A short name of the content, for addresses and ETags."""
        return hashlib.sha256(self.body).hexdigest()[:16]


@cache
def asset(name: str) -> Asset:
    """A file that pages may load; read once. Raises: NotFoundError."""
    if name not in MEDIA_TYPES:
        raise NotFoundError(f"static file {name[:60]!r}: expected one of {', '.join(MEDIA_TYPES)}")
    folder = files("plotly") / "package_data" if name == "plotly.min.js" else files("crosswind.dashboards") / "static"
    return Asset((folder / name).read_bytes(), MEDIA_TYPES[name])
