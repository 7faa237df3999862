"""Progress of an ingestion: bytes of the files that are named, and rows, by looking on from outside."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from crosswind.cli.progress import BYTES, Progress
from crosswind.dashboards.wording import count
from crosswind.ingest.load.load import Loaded
from crosswind.ingest.reader.reader import Report

SEGMENT = ".segment"
DESCRIPTORS, POSITIONS = Path("/proc/self/fd"), Path("/proc/self/fdinfo")


def ingesting(paths: Sequence[str], loaded: Loaded) -> Progress:
    """Return the progress of storing these paths, whose outcome so far is in `loaded`."""
    sizes: dict[str, int] = {}

    def look() -> tuple[float, str]:
        if not sizes:  # not before it takes long: folders may be large
            sizes.update(sizes_of(paths))
            progress.total = sum(sizes.values())
        reports = list(loaded.reports)
        if reports:
            progress.what = Path(reports[-1].path).name
        rows = loaded.rows + sum(report.read for report in reports)
        return bytes_done(sizes, reports), count(rows, "row") if rows else ""

    progress = Progress("ingesting", unit=BYTES, look=look)
    return progress


def sizes_of(paths: Sequence[str]) -> dict[str, int]:
    """Return the sizes in bytes of the files that are named, and of those below folders."""
    sizes = {}
    for path in paths:
        below = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
        for file in below if Path(path).is_dir() else [Path(path)]:
            with suppress(OSError):
                sizes[str(file)] = file.stat().st_size
    return sizes


def bytes_done(sizes: Mapping[str, int], reports: Sequence[Report]) -> int:
    """Return the bytes of files that have a report, of the last one as far as it is read, and of removed segments."""
    done = sum(sizes.get(report.path, 0) for report in reports[:-1])
    if reports and reports[-1].read:  # else it is digested first, in a fraction of the time
        done += min(position_in(Path(reports[-1].path)), sizes.get(reports[-1].path, 0))
    return done + sum(size for path, size in sizes.items() if path.endswith(SEGMENT) and not Path(path).exists())


def position_in(path: Path) -> int:
    """Return how far this process has read in a file that it has open, in bytes; 0 if it is not open.

    Source: proc(5), /proc/pid/fdinfo.
    """
    place = str(path.resolve())
    for descriptor in DESCRIPTORS.iterdir():
        with suppress(OSError):  # closed meanwhile
            if str(descriptor.readlink()) == place:
                return int((POSITIONS / descriptor.name).read_text().split()[1])
    return 0
