"""The two text formats that Prometheus reads."""

from collections.abc import Mapping
from dataclasses import dataclass

from crosswind.ingest.exposition.families import Families, Family, without_totals
from crosswind.ingest.exposition.latest import LatestReading
from crosswind.ingest.exposition.names import Labels

PLAIN = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
LABEL_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
HELP_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n"})


@dataclass(frozen=True)
class Renderer:
    """Renders the last readings; keep one, as it remembers the plan of every set."""

    families: Families

    def render(self, latest: Mapping[str, LatestReading], media_type: str = PLAIN) -> bytes:
        """Return the text of this media type, families sorted by name.

        Source: https://prometheus.io/docs/instrumenting/exposition_formats/; OpenMetrics 1.0
        """
        families = self.families.of(latest)
        if media_type == PLAIN:
            return "".join(_written(family, "") for family in families).encode("utf-8", "replace")
        parts = [_written(family, "_total" if family.kind == "counter" else "") for family in without_totals(families)]
        return "".join([*parts, "# EOF\n"]).encode("utf-8", "replace")


def render(latest: Mapping[str, LatestReading], media_type: str = PLAIN) -> bytes:
    """Return the last readings in one of the two formats."""
    return Renderer(Families()).render(latest, media_type)


def media_type_for(accept: str) -> str:
    """Return the format that an Accept header asks for; the older one in doubt."""
    wanted: dict[str, float] = {}
    for item in accept.lower().split(","):
        media, *parameters = (part.strip() for part in item.split(";"))
        quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        wanted[media] = max(wanted.get(media, 0.0), _quality(quality))
    new = wanted.get("application/openmetrics-text", 0.0)
    return OPEN_METRICS if new > 0 and new >= wanted.get("text/plain", 0.0) else PLAIN


def _quality(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0


def _written(family: Family, suffix: str) -> str:
    lines = [
        f"# HELP {family.name} {family.help.translate(HELP_ESCAPES)}\n",
        f"# TYPE {family.name} {family.kind}\n",
    ]
    name = family.name + suffix
    lines += [f"{name}{_braced(labels)} {value}\n" for labels, value in family.samples.items()]
    return "".join(lines)


def _braced(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{value.translate(LABEL_ESCAPES)}"' for name, value in labels) + "}"
