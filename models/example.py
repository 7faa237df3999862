"""Makes the catalog of the example that pages show where a store has too little: `python -m crosswind.models.example`.

It is written to data/samples/example, whose README says what it is.
"""

import lzma
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from crosswind.data.catalog.lake.identity import FOLDER
from crosswind.data.files import published
from crosswind.data.samples import tuning_grid
from crosswind.data.samples.example import CATALOG
from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.schema.metric import Scalar
from crosswind.data.schema.trial import Study
from crosswind.data.store.store import Store
from crosswind.models.explain.upkeep import compute_due
from crosswind.models.registry.registry import Registry
from crosswind.models.training.trainers import TRAINERS
from crosswind.models.tuner.service.catalog import CatalogStudyService
from crosswind.models.tuner.service.service import Lease

TRIALS = 40
SECOND_NS = 1_000_000_000
PARAMETERS = ("micro_batch", "accumulation_steps", "bucket_cap_mb", "threads", "gradient_as_bucket_view", "precision")
OBJECTIVE = "seconds_per_1000_samples"
HOUR_SECONDS = 3600.0


def main() -> None:
    """Write the catalog to the path that is given, or to its place in this installation."""
    out = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent.parent / "data" / "samples" / "example" / CATALOG
    with TemporaryDirectory() as folder:
        home = Path(folder) / "store"
        with Store.open(home) as store:
            fill(store)
            with store.catalog.write() as session:
                session.lake_identity.forget(FOLDER)  # it ships without its lake
        with published(out, is_durable=False) as file:
            file.write(lzma.compress(_shrunk(home / "catalog.sqlite"), preset=9 | lzma.PRESET_EXTREME))


def fill(store: Store) -> None:
    """Store the lab's runs, judge them, and add a study and the evidence of trained models."""
    load_lab_samples(store)
    compute_due(store, seconds=HOUR_SECONDS)
    with store.catalog.read() as session:
        end_ns = max(run.ended_ns or 0 for run in session.runs.find(limit=1))
    _search(store, end_ns)
    _learn(store, end_ns)


def _search(store: Store, begin_ns: int) -> None:
    """Replay a search on the measured grid, as if each trial had taken the steps that were measured there."""
    now_ns = [begin_ns]
    service = CatalogStudyService(store.catalog, clock=lambda: now_ns[0])
    measured = _measured(tuning_grid())
    study = Study("example", "ddp-grid", _space(tuning_grid()), OBJECTIVE, "s", 0, begin_ns, trials_max=TRIALS)
    service.create(study)
    for _ in range(TRIALS):
        [record] = service.suggest(study.study_id, 1, Lease("lab", HOUR_SECONDS))
        values, seconds = measured[_key(record.trial.configuration)]
        now_ns[0] += round(seconds * SECOND_NS)
        service.complete(study.study_id, record.trial.trial_id, next(values), owner="lab")


def _space(grid: pd.DataFrame) -> dict[str, dict[str, object]]:
    return {name: _parameter(grid[name]) for name in PARAMETERS}


def _parameter(values: pd.Series) -> dict[str, object]:
    if values.dtype == bool:
        return {"kind": "boolean"}
    return {"kind": "ordinal" if values.dtype != object else "categorical", "values": sorted(values.unique().tolist())}


def _measured(grid: pd.DataFrame) -> dict[tuple[object, ...], tuple[Iterator[float], float]]:
    """Return by configuration its measurements, one after the other, and the seconds that one took."""
    return {
        tuple(key): (iter(group[OBJECTIVE].tolist()), float((group.step_seconds * group.steps).mean()))
        for key, group in grid.groupby(list(PARAMETERS))
    }


def _key(configuration: Mapping[str, Scalar]) -> tuple[object, ...]:
    return tuple(configuration[name] for name in PARAMETERS)


def _learn(store: Store, end_ns: int) -> None:
    """Register what is learned of the runs. The models themselves do not ship, so none is promoted."""
    registry = Registry(store, clock=lambda: end_ns)
    for name in ("step_p50_seconds", "run_seconds"):
        trained = TRAINERS[name].train(store)
        registry.register(name, trained.model, trained.evidence)


def _shrunk(path: Path) -> bytes:
    with closing(sqlite3.connect(path)) as database:
        database.execute("pragma journal_mode = delete")
        database.execute("vacuum")
    return path.read_bytes()


if __name__ == "__main__":
    main()
