"""Times of glog and absl at the beginning of lines: older versions have no year."""

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from crosswind.ingest.reader.lines import changed_ns
from crosswind.ingest.readers.clock import Clock
from crosswind.ingest.readers.logs.log_values import moment
from crosswind.ingest.readers.logs.training_log import SECOND

PREFIX = (
    r"(?:^|\s)[IWEF](?P<year>\d{4})?(?P<month>\d\d)(?P<day>\d\d) (?P<time>\d\d:\d\d:\d\d)"
    r"\.(?P<fraction>\d{1,9}) {1,20}\d{1,20} "
)
HALF_A_YEAR = 6  # months


@dataclass
class GlogClock:
    """Turns prefixes into ns UTC, with the year that the log names, else that of the file's last change.

    Source: google/glog, src/logging.cc and README, "log line prefix"; abseil/abseil-py, absl/logging.
    """

    clock: Clock
    changed: datetime  # the log, in the zone of its times
    year: int | None = None
    is_from_file: bool = False
    _newest: datetime | None = None

    def nanoseconds(self, prefix: dict[str, str | None]) -> int:
        """Return the time of the groups of PREFIX. Raises: MalformedError."""
        month, day = int(prefix["month"] or 0), int(prefix["day"] or 0)
        if prefix["year"]:
            self.year, self.is_from_file = int(prefix["year"]), False
        elif self.year is None:
            self.is_from_file = True
            self.year = self.changed.year - ((month, day) > (self.changed.month, self.changed.day))
        elif self._newest and month + HALF_A_YEAR < self._newest.month:  # the year turned
            self.year += 1
        date = f"{self.year}-{prefix['month']}-{prefix['day']}"
        ts_ns = moment(self.clock, date, str(prefix["time"]), prefix["fraction"])
        self._newest = datetime(self.year, month, day, tzinfo=UTC)
        return ts_ns

    def tags(self) -> dict[str, str]:
        """Return the tags of a run with these times."""
        return {"year_from": "the file's modification time: the log names none"} if self.is_from_file else {}


def glog_clock(path: Path, zone: tzinfo) -> GlogClock:
    """Return the clock for one file. Raises: UnavailableError."""
    return GlogClock(Clock(zone), datetime.fromtimestamp(changed_ns(path) // SECOND, zone))
