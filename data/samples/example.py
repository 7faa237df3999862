"""The example that pages show where a store has too little; data/samples/example/README.md says what it is."""

import lzma
from importlib.resources import as_file, files
from pathlib import Path

import pyarrow.parquet as pq

from crosswind.data.files import make_private, published
from crosswind.data.samples.lab_runs import lab_parts, whole
from crosswind.data.store.store import Store

CATALOG, CHECKS = "catalog.sqlite.xz", "preflight.parquet"


def example_store(home: Path) -> Store:
    """Make the example in a folder that is empty or not there, in half a second. Raises: OSError, UnavailableError."""
    make_private(home)
    with as_file(files("crosswind.data.samples") / "example") as folder:
        with published(home / "catalog.sqlite", is_durable=False) as file:
            file.write(lzma.decompress((folder / CATALOG).read_bytes()))
        checks = whole(pq.read_table(folder / CHECKS))
    store = Store.open(home)
    store.lake.append_all({**lab_parts(), "lab-checks": checks})
    return store
