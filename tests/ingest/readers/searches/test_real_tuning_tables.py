"""Exhaustive searches that others published, as tables of configurations; not part of this repository."""

from pathlib import Path

import pandas as pd
import pytest
from tests.needs import needs_data

from crosswind.data.schema.trial import TrialState
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import Loaded
from crosswind.ingest.load.load_file import load_file
from crosswind.ingest.reader.reader import Context
from crosswind.ingest.readers.formats import reader_for
from crosswind.models.tuner.service.catalog import CatalogStudyService

CONVOLUTION = Path(__file__).parents[5] / "shared/data/tuning/kt_convolution/A100.parquet"  # Kernel Tuner, MIT


@pytest.mark.thorough
@needs_data(CONVOLUTION)
def test_four_thousand_kernels_are_one_study(tmp_path: Path) -> None:
    measured = pd.read_parquet(CONVOLUTION)
    measured["objective:time [ms]"] = measured["objective"].where(measured["valid"], "infeasible")
    path = tmp_path / "convolution.csv"
    measured.drop(columns=["objective", "valid", "std", "n"]).to_csv(path, index=False)
    with Store.open(tmp_path / "store") as store:
        loaded = Loaded()
        load_file(store, path, reader_for(path), loaded, context=Context("a100"))
        assert (loaded.trials, loaded.reports[0].skipped) == (len(measured), 0)
        with store.catalog.read() as session:
            [study] = [stored.name for stored in session.studies.all()]
        service = CatalogStudyService(store.catalog)
        best = service.best(study)
        assert best is not None
        assert best.objective == measured["objective"][measured["valid"]].min()
        done = sum(record.trial.state is TrialState.DONE for record in service.trials(study))
        assert done == int(measured["valid"].sum())
