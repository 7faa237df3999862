"""Files that stand for a whole day of a set, written where no query looks, some nodes after others."""

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from crosswind.data.lake.lake import arrow_schema
from crosswind.data.lake.parquet import ROWS_READ_AT_ONCE, chunk_writer, sorted_rows
from crosswind.data.lake.parts import Manifest, digest_of_columns, manifest_of
from crosswind.data.lake.publish import hidden_name
from crosswind.data.lake.publish_merged import Merged, drop_merged
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.metric import MetricSet


@dataclass(frozen=True)
class Origin:
    """Names of what a file is made of, of all that counts no more once it is there, and of what counts until then."""

    made_of: Collection[str]
    names: frozenset[str]
    replaced: frozenset[str]


@dataclass
class DayFile:
    """A file that is written; its tables come in the order of nodes."""

    of: MetricSet
    merged: Merged
    opened: ExitStack
    writer: pq.ParquetWriter | None = field(default=None, init=False)
    rows: int = field(default=0, init=False)

    def add(self, table: pa.Table) -> None:
        """Write some nodes' rows."""
        if not len(table):
            return
        rows = sorted_rows(table).cast(arrow_schema(self.of))
        if self.writer is None:
            writing = chunk_writer(self.merged.file[0], rows, self.of)
            self.writer = self.opened.enter_context(writing)
        self.writer.write_table(rows, row_group_size=ROWS_READ_AT_ONCE)
        self.rows += len(rows)

    def manifest(self, origin: Origin) -> None:
        """Write what it is made of."""
        if not self.rows:
            raise MalformedError(f"{self.merged.path.name}: no rows to write")
        columns = digest_of_columns(column.name for column in self.of.columns)
        manifest = Manifest(tuple(origin.made_of), origin.names, self.rows, columns, runs=None)
        self.merged.manifest[0].write_text(manifest.as_text())


@contextmanager
def day_file(path: Path, of: MetricSet, origin: Origin) -> Iterator[DayFile]:
    """Yield a file for rows of a set, which is complete at the end. Raises: OSError; MalformedError without rows."""
    root, places = path.parents[2], (manifest_of(path), path)
    drafts = [hidden_name(root, place) for place in places]
    merged = Merged(path, origin.replaced, (drafts[0], places[0]), (drafts[1], places[1]))
    try:
        with ExitStack() as opened:
            file = DayFile(of, merged, opened)
            yield file
        file.manifest(origin)
    except BaseException:
        drop_merged([merged])
        raise
