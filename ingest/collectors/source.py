"""A source of the agent: how to make its collector, how often to read it, how to get it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from crosswind.data.schema.errors import InvalidInputError, MalformedError, UnavailableError
from crosswind.data.schema.metric import Collector, Sample
from crosswind.ingest.kernel.kernel_files import KernelFiles
from crosswind.ingest.occupancy.occupancy import Occupancy

Option = str | int | float | bool | list[str]


def no_pids() -> Iterable[int]:
    """Return no processes to watch."""
    return ()


def shows_something(samples: Iterator[Sample]) -> bool:
    """Return whether a read gives a sample, for collectors that have no cheaper test; never raises."""
    try:
        return next(samples, None) is not None
    except (UnavailableError, MalformedError):
        return False


@dataclass(frozen=True)
class Host:
    """The node as collectors see it; a recorded tree has another root."""

    root: Path = Path("/")
    pids: Callable[[], Iterable[int]] = no_pids  # of the ranks to watch, called at every sweep
    occupancy: Occupancy | None = None  # the agent's view of jobs and ranks
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)

    @property
    def proc(self) -> Path:
        """Return the folder in which the kernel shows its processes."""
        return self.root / "proc"

    @property
    def sysfs(self) -> Path:
        """Return the folder in which the kernel shows its devices."""
        return self.root / "sys"


@dataclass(frozen=True)
class Options:
    """The settings file's options of one source; others have the source's defaults."""

    source: str
    values: Mapping[str, Option] = field(default_factory=dict)

    def text(self, name: str, default: str = "") -> str:
        """Return a text. Raises: InvalidInputError."""
        value = self.values.get(name, default)
        if not isinstance(value, str):
            raise InvalidInputError(f"sources.{self.source}.{name}: {value!r:.80}, expected a text")
        return value

    def texts(self, name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return a list of texts. Raises: InvalidInputError."""
        value = self.values.get(name, list(default))
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise InvalidInputError(f"sources.{self.source}.{name}: {value!r:.80}, expected a list of texts")
        return tuple(value)

    def number(self, name: str, default: float) -> float:
        """Return a finite number above 0. Raises: InvalidInputError."""
        value = self.values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
            raise InvalidInputError(f"sources.{self.source}.{name}: {value!r:.80}, expected a number above 0")
        return float(value)

    def flag(self, name: str, *, default: bool) -> bool:
        """Return true or false. Raises: InvalidInputError."""
        value = self.values.get(name, default)
        if not isinstance(value, bool):
            raise InvalidInputError(f"sources.{self.source}.{name}: {value!r:.80}, expected true or false")
        return value


@dataclass(frozen=True)
class Source:
    """One source of samples.

    `interval_seconds` 0 means every tick. A source with `timeout_seconds` may hang or take long: it is read on a thread
    of its own, and is down while it does not answer in time. `options` are the names that its settings may hold.
    """

    name: str
    make: Callable[[Host, Options], Collector]
    advice: str  # how to get it where it is missing
    interval_seconds: float = 0.0
    timeout_seconds: float | None = None
    is_default: bool = True  # read by default
    options: tuple[str, ...] = ()
