"""A table that is read when it is asked for, part by part."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # heavy
    import pandas as pd
    import pyarrow as pa

SPREAD = "configuration"  # whose parameters become columns of a data frame
OBJECTS = frozenset({SPREAD, "software", "tags", "facts", "outcomes", "weights", "sources_down"})  # JSON in Arrow


@dataclass(frozen=True)
class Table:
    """The rows that meet some conditions, all of them; nothing is read before a method asks for them.

    Also what libraries take that know Arrow's C stream, such as `polars.DataFrame(table)`.
    """

    name: str
    parts: Callable[[], Iterator[pa.Table]]  # one at least

    def reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream that holds one part at a time, some thousand rows."""
        import pyarrow as pa  # noqa: PLC0415 - heavy

        parts = self.parts()
        first = next(parts)
        batches = (batch for part in chain((first,), parts) for batch in part.cast(first.schema).to_batches())
        return pa.RecordBatchReader.from_batches(first.schema, batches)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, some thousand at a time."""
        yield from self.reader()

    def to_arrow(self) -> pa.Table:
        """Return all rows. Moments are timestamps in UTC, words dictionaries, objects such as `configuration` JSON."""
        return self.reader().read_all()

    def to_pandas(self) -> pd.DataFrame:
        """Return all rows as a data frame.

        Whole numbers, texts and truth values have types that know missing values, words are categories, moments
        timestamps in UTC. Each parameter of a configuration is a column `configuration.NAME`.
        """
        import pandas as pd  # noqa: PLC0415 - heavy
        import pyarrow as pa  # noqa: PLC0415

        kinds = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype(), pa.string(): pd.StringDtype()}
        frame = self.to_arrow().to_pandas(types_mapper=kinds.get)
        for name in OBJECTS.intersection(frame.columns):
            frame[name] = [json.loads(text) if isinstance(text, str) else None for text in frame[name]]
        return _spread(frame, SPREAD) if SPREAD in frame.columns else frame

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any:
        return self.reader().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<table of {self.name}: to_pandas(), to_arrow() or batches() reads it>"


def _spread(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the frame with a column for every key of the objects in one of its columns, in that column's place."""
    import pandas as pd  # noqa: PLC0415 - heavy

    objects = pd.DataFrame([value or {} for value in frame[name]], index=frame.index).convert_dtypes()
    place = list(frame.columns).index(name)
    before, after = frame.iloc[:, :place], frame.iloc[:, place + 1 :]
    return pd.concat([before, objects.add_prefix(f"{name}."), after], axis=1)
