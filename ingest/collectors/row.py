"""Whole rows, which spare a collector of many values a mapping for every sample."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from crosswind.data.schema.metric import Sample, Scalar

Row = tuple[Scalar, ...]  # the device, then a value for each of the set's own columns, in its order; None for missing


@runtime_checkable
class GivesRows(Protocol):
    """A collector that knows the order of its columns."""

    def read_rows(self) -> Sequence[Row]:
        """Return the samples of `read` as rows; an unchanged one may be the same object. Raises: as `read`."""
        ...


def samples_of(rows: Iterable[Row], names: Sequence[str]) -> Iterator[Sample]:
    """Yield the rows as samples, without missing values."""
    for device, *values in rows:
        yield Sample(str(device), {name: value for name, value in zip(names, values, strict=True) if value is not None})
