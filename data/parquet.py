"""How tables are written as Parquet: parts of minutes quickly, large ones small."""

from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

LARGE_ROWS = 20_000


def write_parquet(table: pa.Table, path: Path, keys: Collection[str]) -> None:
    """Writes the table; `keys` are the columns by which queries pass over files.

    Differences of neighbours are smaller than what zstd makes of counters, in a third of the time: setting a
    compressor up costs more than a minute's column is worth. Raises: OSError.
    """
    is_large = len(table) >= LARGE_ROWS
    strings = [field.name for field in table.schema if pa.types.is_string(field.type)]
    integers = [field.name for field in table.schema if pa.types.is_integer(field.type)]
    others = "zstd" if is_large else "snappy"
    pq.write_table(
        table,
        path,
        compression={name: "none" if name in integers and not is_large else others for name in table.column_names},
        use_dictionary=strings,
        column_encoding=dict.fromkeys(integers, "DELTA_BINARY_PACKED"),
        write_statistics=[name for name in table.column_names if name in keys],
    )
