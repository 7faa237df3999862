"""Large tables have dictionaries where values come again, and only there."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from crosswind.data.lake.parquet import LARGE_ROWS, write_parquet
from crosswind.data.schema.job import Job
from crosswind.data.store.jobs import JOB, job_table


def encodings_of(path: Path) -> dict[str, tuple[str, ...]]:
    first = pq.ParquetFile(path).metadata.row_group(0)
    columns = [first.column(place) for place in range(first.num_columns)]
    return {column.path_in_schema: column.encodings for column in columns}


def table_of(rows: int) -> pa.Table:
    jobs = [Job(system="s", job_id=str(number), name=f"n{number % 50}", state="COMPLETED") for number in range(rows)]
    return job_table(jobs, reported_ns=1)


def test_texts_that_never_come_again_get_no_dictionary_and_read_back(tmp_path: Path) -> None:
    table = table_of(LARGE_ROWS)
    write_parquet(table, tmp_path / "large", JOB)
    encodings = encodings_of(tmp_path / "large")
    assert "RLE_DICTIONARY" not in encodings["job_id"]
    assert "RLE_DICTIONARY" in encodings["name"]
    assert "RLE_DICTIONARY" in encodings["state"]
    assert pq.read_table(tmp_path / "large").equals(table)
