"""Building and racks: readings from files that a gateway (MQTT, Modbus, BACnet, SNMP) writes."""

import logging
import os
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import ClassVar

from crosswind.data.schema.errors import InvalidInputError, MalformedError, UnavailableError
from crosswind.data.schema.metric import Collector, MetricSet, Sample, Scalar
from crosswind.ingest.collectors.facility_lines import Line, Parse, csv_parser, json_line
from crosswind.ingest.collectors.facility_units import UNITS
from crosswind.ingest.collectors.sensor_set import SENSOR, SKIPPED, NotConfigured, readings, sensor
from crosswind.ingest.collectors.source import Host, Options, Source
from crosswind.ingest.collectors.tail import Tail

LOG = logging.getLogger("crosswind.ingest")
COLUMNS = ("time", "sensor", "value", "unit")
CSV_ENDINGS, ENDINGS = (".csv",), (".csv", ".jsonl", ".json")
MAX_FILES = 200
MAX_SENSORS = 20_000
REMEMBERED = 8  # last readings of a sensor, by which a repeated message is recognised


class Followed:
    """One file with its parser, and the count of its malformed lines."""

    def __init__(self, path: str, *, from_start: bool, columns: Sequence[str]) -> None:
        self.tail = Tail(path, from_start=from_start, has_header=path.endswith(CSV_ENDINGS))
        self.skipped = 0
        self.problem = ""
        self._columns = columns
        self._header: bytes | None = None
        self._parse: Parse = json_line

    def lines(self) -> Iterator[Line]:
        """Yield the new readings. Raises: UnavailableError; MalformedError for a header that lacks what is needed."""
        lines = self.tail.lines()
        if self.tail.header is not None and self.tail.header != self._header:
            self._parse = csv_parser(self.tail.header.decode("utf-8", "replace").strip(), self._columns)
            self._header = self.tail.header
        for line in lines:
            if text := line.decode("utf-8", "replace").strip():
                try:
                    yield self._parse(text)
                except MalformedError as error:
                    self.skip(str(error))

    def skip(self, problem: str) -> None:
        """Count a line that gives no reading."""
        self.skipped += 1
        self.problem = problem

    def report(self) -> Sample:
        """Return how many lines gave no reading since the agent began, and the last reason."""
        name = f"file {os.path.basename(self.tail.path)}"[:200]  # noqa: PTH119 - only the name is needed
        return sensor(name, {SKIPPED.name: self.skipped + self.tail.long_lines}, health=self.problem[:200])


@dataclass
class _State:
    files: dict[str, Followed] = field(default_factory=dict)
    has_looked: bool = False
    given: dict[str, deque[tuple[object, ...]]] = field(default_factory=dict)


@dataclass(frozen=True)
class FacilityCollector:
    """New readings since the last look, each with its own time, in base units.

    The content of files at the agent's start is skipped: an earlier agent may have read it. A file that comes later is
    read from its start. The unit of a reading is in its line or in the settings, and is never guessed.

    Source: mosquitto_sub(1), formats %j and %J
    """

    path: str
    columns: tuple[str, ...] = COLUMNS
    units: tuple[tuple[str, str], ...] = ()  # pattern of sensor names, unit
    metric_set: ClassVar[MetricSet] = SENSOR
    _state: _State = field(default_factory=_State, init=False, repr=False, compare=False)

    def available(self) -> bool:
        """Return whether there is such a file or folder."""
        return os.path.exists(self.path)  # noqa: PTH110 - the path is a text

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every reading and every file. Raises: UnavailableError, MalformedError."""
        self._look_for_files()
        problems: list[UnavailableError | MalformedError] = []
        samples: list[Sample] = []
        for path, file in list(self._state.files.items()):
            try:
                samples.extend(self._samples(file))
            except (UnavailableError, MalformedError) as error:
                problems.append(type(error)(f"{path}: {error}" if path not in str(error) else str(error)))
                if isinstance(error, UnavailableError):
                    del self._state.files[path]
            else:
                samples.append(file.report())
        if not samples:
            raise problems[0] if problems else UnavailableError(f"{self.path}: no file ending in {', '.join(ENDINGS)}")
        for problem in problems:
            LOG.warning("facility: %s", problem)
        yield from samples

    def _samples(self, file: Followed) -> Iterator[Sample]:
        for line in file.lines():
            unit = UNITS.get(line.unit or self._unit_of(line.sensor))
            if unit is None:
                file.skip(f"sensor {line.sensor!r:.80}: unit {line.unit!r:.20} is not known; settings may say it")
                continue
            values = readings({unit: line.value})
            if not values:
                file.skip(f"sensor {line.sensor!r:.80}: no sensor measures {line.value!r:.40}")
            elif self._is_new(line, values):
                yield sensor(line.sensor, values, measured_ns=line.measured_ns)

    def _unit_of(self, name: str) -> str:
        return next((unit for pattern, unit in self.units if fnmatchcase(name, pattern)), "")

    def _is_new(self, line: Line, values: dict[str, Scalar]) -> bool:
        given = self._state.given
        if line.sensor not in given and len(given) >= MAX_SENSORS:
            del given[next(iter(given))]
        last = given.setdefault(line.sensor, deque(maxlen=REMEMBERED))
        reading = (line.measured_ns, *values.items())
        if reading in last:
            return False
        last.append(reading)
        return True

    def _look_for_files(self) -> None:
        state = self._state
        followed = {file.tail.identity: path for path, file in state.files.items()}
        for path in self._paths():
            if path in state.files:
                continue
            renamed = followed.get(_identity(path))
            if renamed in state.files:  # reading goes on where it was under its old name
                state.files[path] = state.files.pop(renamed)
                state.files[path].tail.path = path
            else:
                state.files[path] = Followed(path, from_start=state.has_looked, columns=self.columns)
        state.has_looked = True

    def _paths(self) -> list[str]:
        try:
            names = sorted(os.listdir(self.path))  # noqa: PTH208 - only names are needed
        except NotADirectoryError:
            return [self.path]
        except OSError as error:
            if self._state.files:  # lines written before the folder went are still to be read
                return []
            raise UnavailableError(f"{self.path}: {error.strerror}") from error
        return [f"{self.path}/{name}" for name in names if name.endswith(ENDINGS) and name.isprintable()][:MAX_FILES]


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - the path is a text
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _make(_: Host, options: Options) -> Collector:
    path = options.text("path")
    if not path:
        return NotConfigured("sources.facility.path")
    columns = options.texts("columns", COLUMNS)
    if len(columns) != len(COLUMNS):
        raise InvalidInputError(f"sources.facility.columns: {list(columns)!r:.200}, expected names of {COLUMNS}")
    pairs = [text.rpartition("=")[::2] for text in options.texts("units")]
    for pattern, unit in pairs:
        if not pattern or unit not in UNITS:
            raise InvalidInputError(
                f"sources.facility.units: '{pattern}={unit}', expected SENSOR=UNIT with one of {' '.join(UNITS)}"
            )
    return FacilityCollector(path, columns, tuple(pairs))


SOURCE = Source(
    "facility",
    _make,
    advice='[sources.facility] path = a CSV or JSON-lines file, or a folder of them; units = ["rack1/*=degC"] where the'
    " lines say none",
    interval_seconds=10.0,
    timeout_seconds=10.0,
    is_default=False,
    options=("path", "columns", "units"),
)
