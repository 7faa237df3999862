"""Raw rows of a day that was rolled up give way, by one change, to the last row of each series."""

from crosswind.data.lake.instance import new_connection
from crosswind.data.lake.parts import Manifest, compacted_span
from crosswind.data.lake.removal import remove_replaced
from crosswind.data.lake.retention.days import DayFiles, days_in
from crosswind.data.lake.retention.last_rows import last_rows
from crosswind.data.lake.retention.rolling import nodes_in, read_rows
from crosswind.data.lake.retention.rollups_of_day import SetToRoll, uncovered
from crosswind.data.lake.retention.staging import Origin, day_file
from crosswind.data.lake.storage import PATIENCE_SECONDS, Filed
from crosswind.data.schema.errors import ConflictError
from crosswind.data.schema.metric import MetricSet


def retire(of: SetToRoll, day: DayFiles, seconds: list[int]) -> None:
    """Let the raw rows of a day go, within `changing`, whose roll-ups at these resolutions have them all.

    Rows that came since stay. Raises: ConflictError where a roll-up lacks some; MalformedError, OSError.
    """
    for one in seconds:
        _check_rolled_up(of, day, one)
    lake, folder = of.lake, of.lake.root / f"set={of.name}" / f"date={day.date}"
    names = frozenset(day.names)
    path = folder / day.named(names, "-last")
    kept = MetricSet(of.name, "", tuple(of.columns.values()))
    with day_file(path, kept, Origin(sorted(names), names | _older(of, day), names)) as file:
        source = of.source(day.files)
        with new_connection() as connection:
            for nodes in nodes_in(connection, source, len(of.columns)):
                file.add(last_rows(read_rows(connection, source, nodes, of.columns)))
    live = days_in(lake.storage.day(folder).live)[day.day]
    lake.storage.replace([one.path for one in live.files if one.path.name in names], file.merged)
    remove_replaced(lake.root, lake.storage.day(folder).replaced, PATIENCE_SECONDS)


def _check_rolled_up(of: SetToRoll, day: DayFiles, seconds: int) -> None:
    rollups = of.rollup(seconds, day)
    if len(rollups) != 1 or (missing := uncovered(of, day, rollups[0])):
        what = f"{missing[0].path.name} and {len(missing) - 1} others" if len(rollups) == 1 else "anything"
        raise ConflictError(f"{of.name} of {day.date} stays: its roll-up at {seconds} s does not have {what}")


def _older(of: SetToRoll, day: DayFiles) -> frozenset[str]:
    """Return the names of all files that those of a day were made of."""
    compacted = [file for file in day.files if compacted_span(file.path.name)]
    return frozenset().union(*(_names(of, file) for file in compacted))


def _names(of: SetToRoll, file: Filed) -> frozenset[str]:
    of.lake.storage.made_of(file)
    return Manifest.read(file.path).names
