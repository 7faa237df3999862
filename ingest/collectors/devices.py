"""Devices that are folders of files with one number each: searched for from time to time, read at every sweep."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.metric import Sample, Scalar
from crosswind.ingest.collectors.listing import Listing
from crosswind.ingest.kernel.kernel_files import KernelFiles

MAX_TEXT = 200
MAX_DIGITS = 18  # the longest that always fits 64 bits with a sign


@dataclass(frozen=True, slots=True)
class Device:
    """A device: its name, its constant facts, and the file of each of its columns."""

    name: str
    files: tuple[tuple[str, str], ...]  # column, path
    facts: Mapping[str, Scalar] = field(default_factory=dict)


class DeviceList:
    """The devices of the last search. One without any number is left out until the next search."""

    def __init__(self) -> None:
        self._listing: Listing[Device] = Listing()

    def samples(self, find: Callable[[], Iterable[Device]], files: KernelFiles) -> list[Sample]:
        """Return a sample of each device that has a number now. Raises: what `find` raises."""
        return self._listing.samples(find, lambda device: _sample(device, files))


def number_in(path: str, files: KernelFiles) -> int | None:
    """Return the whole number in a file; None if it is missing, refused or holds anything else."""
    try:
        return whole_number(files.read(path))
    except (UnavailableError, MalformedError):
        return None


def whole_number(content: bytes) -> int | None:
    """Return the number, if the content is one of at most 64 bits and nothing else."""
    digits = content.strip()
    if len(digits) <= MAX_DIGITS and digits.removeprefix(b"-").isdigit():
        return int(digits)
    return None


def text_in(path: str, files: KernelFiles) -> str | None:
    """Return the one line of text in a file; None if it is missing, empty, too long or not printable."""
    try:
        text = files.read(path).decode("utf-8").strip()
    except (UnavailableError, MalformedError, UnicodeDecodeError):
        return None
    return text if 0 < len(text) <= MAX_TEXT and text.isprintable() else None


def _sample(device: Device, files: KernelFiles) -> Sample | None:
    numbers: dict[str, int] = {}
    for column, path in device.files:  # the inmost loop of every sweep: one call a file
        try:
            content = files.read(path)
        except (UnavailableError, MalformedError):
            continue
        digits = content[:-1]
        number = int(digits) if len(digits) <= MAX_DIGITS and digits.isdigit() else whole_number(content)
        if number is not None:
            numbers[column] = number
    return Sample(device.name, {**device.facts, **numbers}) if numbers else None
