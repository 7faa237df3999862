"""Energy of MLPerf's metered runs of v4.0 from their meters' readings, beside what was computed from them elsewhere."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.needs import needs_data

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.metric import with_node_keys
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store
from crosswind.ingest.collectors.sensor_set import SENSOR
from crosswind.models.energy.measured import measured_energy

FOLDER = Path(__file__).resolve().parents[4] / "shared" / "data" / "power"
METERED = "smc-ac-power"
JOULES = 3.6e6

pytestmark = needs_data(FOLDER)


def put_readings(store: Store, name: str, readings: pd.DataFrame) -> tuple[str, ...]:
    """The run's nodes, each named after the run, as the runs' clocks overlap."""
    nodes = [f"{name}-{meter}" for meter in readings["meter"]]
    columns = {
        "ts_ns": (readings["time_ms"] * 10**6).tolist(),
        "node": nodes,
        "device": ["power AC"] * len(nodes),
        "power_watts": readings["watt"].astype(float).tolist(),
    }
    store.lake.append(name, to_table(with_node_keys(SENSOR), columns))
    return tuple(sorted(set(nodes)))


@pytest.mark.thorough
def test_readings_every_two_seconds_make_the_energy_that_others_computed(tmp_path: Path) -> None:
    trace = pd.read_parquet(FOLDER / "power_trace.parquet")
    by_run = dict(list(trace[trace["submitter_dir"].eq(METERED)].groupby(["benchmark", "run"], observed=True)))
    table = pd.read_parquet(FOLDER / "energy_runs.parquet")
    table = table[table["covered"] & table["submitter_dir"].eq(METERED)].reset_index(drop=True)
    runs = []
    with Store.open(tmp_path / "store") as store:
        for number, row in table.iterrows():
            nodes = put_readings(store, f"run{number}", by_run[row["benchmark"], row["run"]])
            began = int(row["run_start_ms"]) * 10**6
            ended = began + int(row["ttt_min"] * 60e9)
            names = (f"run{number}", str(row["benchmark"]), "smc", RunState.COMPLETED)
            runs.append(Run(*names, nodes=nodes, started_ns=began, ended_ns=ended))
        measured = measured_energy(store, runs)
    errors = np.array(
        [
            measured[run.run_id].energy.joules / (kilowatt_hours * JOULES) - 1
            for run, kilowatt_hours in zip(runs, table["energy_nodes_kWh"], strict=True)
            if run.run_id in measured
        ]
    )
    assert (len(runs), len(errors)) == (140, 139)
    [unknown] = [run for run in runs if run.run_id not in measured]
    assert unknown.workload == "resnet"  # of 153 s; a node's meter was silent for 19 s across each of its edges
    assert np.median(np.abs(errors)) < 0.001
    assert np.abs(errors).max() < 0.02  # both fill what a meter did not tell, each in its way
