"""Jobs as a reader of accounting gives them: rows of the set `job`."""

import json

import pyarrow as pa

from crosswind.data.schema.hostlist import expand
from crosswind.data.schema.job import Job
from crosswind.data.store.jobs import FACTS


def jobs_of(table: pa.Table) -> list[Job]:
    rows = table.select(FACTS).to_pylist()
    texts = [{name: row[name] or "" for name in ("name", "state")} for row in rows]
    fields = [json.loads(row["fields"] or "{}") for row in rows]
    return [
        Job(**row | names | {"nodes": expand(row["nodes"] or ""), "fields": facts})
        for row, names, facts in zip(rows, texts, fields, strict=True)
    ]
