"""JSON of columns is what the standard library writes of rows."""

import json
import random

import pyarrow as pa
import pytest

from crosswind.ingest.readers.slurm.json_texts import json_objects

TEXTS = ("", "a", "späte ☃", 'say "hi"', "back\\slash", "\\u0041", "x" * 50)


@pytest.mark.parametrize("seed", range(50))
def test_rows_become_what_json_dumps_writes(seed: int) -> None:
    chance = random.Random(seed)
    names = [f'na"me{number}' for number in range(chance.randrange(1, 5))]
    pools = {name: chance.choice((TEXTS, TEXTS[1:], TEXTS[:1], TEXTS[:2])) for name in names}
    rows = [{name: chance.choice(pools[name]) for name in names} for _ in range(chance.randrange(1, 9))]
    columns = [(name, pa.array([row[name] for row in rows], pa.string())) for name in names]
    nonempty = [{name: text for name, text in row.items() if text} for row in rows]
    assert json_objects(columns, len(rows), are_plain=False).to_pylist() == [
        json.dumps(row, ensure_ascii=False) if row else None for row in nonempty
    ]


def test_plain_texts_are_not_looked_at() -> None:
    columns = [("a", pa.array(["x", "y"])), ("b", pa.array(["", "z"]))]
    assert json_objects(columns, 2, are_plain=True).to_pylist() == ['{"a": "x"}', '{"a": "y", "b": "z"}']
