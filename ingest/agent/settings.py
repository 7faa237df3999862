"""The settings of an agent: defaults, or a TOML file, which SIGHUP makes it read again."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.ingest.collectors.source import Option, Options, Source

INTERVAL_SECONDS = (0.01, 3600.0)  # shorter, the agent would disturb what it watches
NODE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,254}")
PACE = ("enabled", "interval_seconds", "timeout_seconds")  # settings that every source has

Types = tuple[type, ...]
WORDS = {str: "a text", int: "a number", dict: "a table"}
TEXT: Types = (str,)
NUMBER: Types = (int, float)
TABLE: Types = (dict,)
KEYS: Mapping[str, Types] = {
    **dict.fromkeys(("spool", "run_directory", "job_directory", "node"), TEXT),
    **dict.fromkeys(("interval_seconds", "segment_seconds"), NUMBER),
    "spool_bytes": (int,),
    **dict.fromkeys(("ship", "metrics", "job_tokens", "sources"), TABLE),
}
SHIP_KEYS: Mapping[str, Types] = {"url": TEXT, "token_file": TEXT}
METRICS_KEYS: Mapping[str, Types] = {"listen": TEXT, "token_file": TEXT}
JOB_TOKENS_KEYS: Mapping[str, Types] = {"listen": TEXT}


@dataclass(frozen=True)
class ShipSettings:
    """The address to send sealed segments to, and the token; without a URL they wait in the spool."""

    url: str = ""
    token_file: str = ""


@dataclass(frozen=True)
class MetricsSettings:
    """The address at which to serve the last sweep to Prometheus (`127.0.0.1:9750`; none when empty), and for whom."""

    listen: str = ""
    token_file: str = ""


@dataclass(frozen=True)
class JobTokensSettings:
    """The Unix socket at which the node's jobs get tokens (none when empty); the agent's own is that of `ship`."""

    listen: str = ""


@dataclass(frozen=True)
class AgentSettings:
    """The places that the agent reads and writes, how often, and for which node."""

    spool: Path
    interval_seconds: float = 1.0
    run_directory: Path | None = None  # where ranks announce themselves; without it no process is watched
    job_directory: Path | None = None  # where the scheduler's prolog names the jobs of this node
    node: str = ""  # this node's name when empty
    root: Path = Path("/")
    segment_seconds: float = 60.0  # how long samples may wait before they can be shipped
    spool_bytes: int = 1024 * 1024 * 1024
    last_answers_seconds: float = 2.0  # how long the end waits for slow sources
    ship: ShipSettings = ShipSettings()
    metrics: MetricsSettings = MetricsSettings()
    job_tokens: JobTokensSettings = JobTokensSettings()
    sources: Mapping[str, Mapping[str, Option]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shortest, longest = INTERVAL_SECONDS
        if not shortest <= self.interval_seconds <= longest:
            raise InvalidInputError(f"interval {self.interval_seconds} s: expected {shortest} to {longest} s")
        if not 1.0 <= self.segment_seconds <= longest:
            raise InvalidInputError(f"segment_seconds {self.segment_seconds}: expected 1 to {longest}")
        if self.spool_bytes < 1024 * 1024:
            raise InvalidInputError(f"spool_bytes {self.spool_bytes}: expected a mebibyte at least")
        if self.job_tokens.listen and not (self.ship.url and self.job_tokens.listen.startswith("/")):
            raise InvalidInputError(f"job_tokens.listen {self.job_tokens.listen!r:.80}: expected a path, and ship.url")

    def options(self, source: Source) -> Options:
        """Return the options of this source, other than its pace."""
        table = self.sources.get(source.name, {})
        return Options(source.name, {name: value for name, value in table.items() if name not in PACE})

    def is_enabled(self, source: Source) -> bool:
        """Return whether to read this source; one that has any setting is wanted. Raises: InvalidInputError."""
        table = self.sources.get(source.name)
        default = source.is_default if table is None else True
        return Options(source.name, table or {}).flag("enabled", default=default)

    def paced(self, source: Source) -> Source:
        """Return the source at the pace that the settings name. Raises: InvalidInputError."""
        options = Options(source.name, self.sources.get(source.name, {}))
        if "interval_seconds" in options.values:
            source = replace(source, interval_seconds=options.number("interval_seconds", 0.0))
        if "timeout_seconds" in options.values:
            source = replace(source, timeout_seconds=options.number("timeout_seconds", 0.0))
        return source


def read_settings(path: Path, defaults: AgentSettings) -> AgentSettings:
    """The settings of a TOML file over defaults.

    Raises: UnavailableError when it cannot be read; InvalidInputError naming file and key.
    """
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise InvalidInputError(f"{path}: expected TOML: {error}") from error
    try:
        return _settings(document, defaults)
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from error


def _settings(document: Mapping[str, Any], defaults: AgentSettings) -> AgentSettings:
    values = _checked("", document, KEYS)
    node = values.get("node", "")
    if node and not NODE_NAME.fullmatch(node):
        raise InvalidInputError(f"node {node!r:.80}: expected letters, digits, dots, dashes or _, at most 255")
    paths: dict[str, Any] = {
        name: _folder(name, values[name]) for name in ("spool", "run_directory", "job_directory") if name in values
    }
    tables: dict[str, Any] = {}
    if "ship" in values:
        tables["ship"] = ShipSettings(**_checked("ship.", values["ship"], SHIP_KEYS))
    if "metrics" in values:
        tables["metrics"] = MetricsSettings(**_checked("metrics.", values["metrics"], METRICS_KEYS))
    if "job_tokens" in values:
        tables["job_tokens"] = JobTokensSettings(**_checked("job_tokens.", values["job_tokens"], JOB_TOKENS_KEYS))
    for name, table in values.get("sources", {}).items():
        if not isinstance(table, dict):
            raise InvalidInputError(f"sources.{name}: {table!r:.80}, expected a table")
    changes: dict[str, Any] = values | paths | tables
    return replace(defaults, **changes)


def _folder(name: str, text: str) -> Path:
    if not text.startswith("/"):
        raise InvalidInputError(f"{name}: {text!r:.80}, expected a path that begins with /")
    return Path(text)


def _checked(prefix: str, table: Mapping[str, Any], types: Mapping[str, Types]) -> dict[str, Any]:
    for name, value in table.items():
        if name not in types:
            raise InvalidInputError(f"{prefix}{name}: unknown; expected one of {', '.join(types)}")
        if type(value) not in types[name]:
            raise InvalidInputError(f"{prefix}{name}: {value!r:.80}, expected {WORDS[types[name][0]]}")
    return dict(table)
