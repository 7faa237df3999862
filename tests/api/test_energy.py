"""Energy of ended runs and of runs to come in the API."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient
from tests.api.conftest import SECOND, START_NS
from tests.serving import own_client

from crosswind.api.app import create_app
from crosswind.api.settings import ServerSettings
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.carbon import CarbonIntensity
from crosswind.data.schema.metric import with_node_keys
from crosswind.data.store.store import Store
from crosswind.ingest.collectors.pm_counters import PM_COUNTERS

WATTS = 600
RUN = {"workload": "nanogpt", "system": "lab", "configuration": {"batch": 8, "fused": True}}
REQUEST = {**RUN, "world_size": 2}
INTENSITY = CarbonIntensity(300, 1.2)


def put_meter(store: Store, *, until: int = 500) -> None:
    """Joules of node n1, every 2 s, while all eight runs of the filled store were there, or until so many seconds."""
    times = range(-10, until, 2)
    columns = {
        "ts_ns": [START_NS + second * SECOND for second in times],
        "node": ["n1"] * len(times),
        "device": ["node"] * len(times),
        "boot_id": ["b"] * len(times),
        "energy_joules_total": [10_000 + WATTS * second for second in times],
    }
    store.lake.append("meter", to_table(with_node_keys(PM_COUNTERS), columns))


@pytest.fixture
def metered(store: Store) -> Iterator[TestClient]:
    """A server with a carbon intensity, over a store whose node was metered."""
    put_meter(store)
    settings = ServerSettings(intensity=INTENSITY)
    with own_client(create_app(store, settings), base_url="http://localhost:8000") as opened:
        yield opened


def test_a_metered_run_is_reported_with_its_joules(metered: TestClient) -> None:
    energy = metered.get("/v1/runs/r3").json()["energy"]
    assert energy["joules"] == pytest.approx(WATTS * 30)
    assert (energy["origin"], energy["scope"], energy["meter"]) == ("measured", "node", "pm_counters")
    assert energy["coverage"] == pytest.approx(1)
    assert energy["node_watts"] == pytest.approx(WATTS)
    assert energy["carbon_grams"] == pytest.approx(WATTS * 30 / 3.6e6 * 1.2 * 300)


def test_a_run_that_was_metered_in_part_has_no_joules(store: Store, client: TestClient) -> None:
    put_meter(store, until=20)
    assert client.get("/v1/runs/r0").json()["energy"] is None


def test_the_energy_of_a_run_to_come_is_that_of_metered_runs(metered: TestClient) -> None:
    energy = metered.post("/v1/predictions", json=REQUEST | {"outcome": "run_seconds"}).json()["energy"]
    assert energy["joules"] == pytest.approx(WATTS * 30, rel=0.001)
    assert energy["low_joules"] < energy["joules"] < energy["high_joules"]
    assert (energy["origin"], energy["basis"], energy["metered_runs"]) == ("measured", "cohort", 8)
    assert (energy["node_count"], energy["node_watts"]) == (1, pytest.approx(WATTS))
    assert energy["carbon_grams"] == pytest.approx(energy["joules"] / 3.6e6 * 1.2 * 300)


def test_the_energy_of_a_step_is_that_of_one_step(metered: TestClient) -> None:
    prediction = metered.post("/v1/predictions", json=REQUEST).json()
    [median] = [quantile["seconds"] for quantile in prediction["quantiles"] if quantile["level"] == 0.5]
    assert prediction["energy"]["joules"] == pytest.approx(WATTS * median, rel=0.001)


def test_another_workload_that_names_its_accelerator_is_estimated(client: TestClient) -> None:
    network = {"hidden": 4096, "layers": 32, "tp": 8, "pp": 2, "global_batch": 512, "accelerator": "H100"}
    request = {"workload": "gpt", "system": "lab", "configuration": network, "world_size": 64}
    energy = client.post("/v1/predictions", json=request).json()["energy"]
    assert (energy["origin"], energy["basis"], energy["carbon_grams"]) == ("estimated", "data_sheet", None)


def test_without_meter_and_accelerator_the_energy_is_null(client: TestClient) -> None:
    assert client.post("/v1/predictions", json=REQUEST).json()["energy"] is None


def test_scales_are_priced_by_the_metered_power_of_a_node(metered: TestClient) -> None:
    request = {**RUN, "node_counts": [1, 2], "ranks_per_node": 2}
    first, second = metered.post("/v1/scaling-advice", json=request).json()["curve"]["points"]
    assert first["joules"] == pytest.approx(WATTS * first["node_hours"] * 3600, rel=0.001)
    assert second["joules"] == pytest.approx(WATTS * second["node_hours"] * 3600, rel=0.001)
    assert first["energy_origin"] == "measured"
    assert first["carbon_grams"] == pytest.approx(first["joules"] / 3.6e6 * 1.2 * 300)


def test_watts_that_are_asked_with_come_before_what_was_metered(metered: TestClient) -> None:
    request = {**RUN, "node_counts": [1], "ranks_per_node": 2, "node_watts": 100, "carbon_grams_per_kilowatt_hour": 10}
    [point] = metered.post("/v1/scaling-advice", json=request).json()["curve"]["points"]
    assert point["joules"] == pytest.approx(100 * point["node_hours"] * 3600)
    assert point["carbon_grams"] == pytest.approx(point["joules"] / 3.6e6 * 10)
    assert point["energy_origin"] is None


def test_carbon_of_an_energy_that_nobody_tells_is_refused(client: TestClient) -> None:
    request = {**RUN, "node_counts": [1], "ranks_per_node": 2, "carbon_grams_per_kilowatt_hour": 10}
    answer = client.post("/v1/scaling-advice", json=request)
    assert answer.status_code == 422
    assert "goes with node_watts" in answer.json()["detail"]


def test_damaged_samples_leave_the_time_to_be_reported(metered: TestClient, store: Store) -> None:
    [part] = store.lake.root.glob("set=pm_counters/date=*/part-meter.parquet")
    part.write_bytes(b"PAR1 no more")
    prediction = metered.post("/v1/predictions", json=REQUEST | {"outcome": "run_seconds"}).json()
    assert prediction["quantiles"][3]["seconds"] == pytest.approx(30)
    assert prediction["energy"] is None
    [name] = metered.get("/readyz").json()["coverage"]["files"]
    assert name.endswith("part-meter.parquet")


def test_an_answer_that_is_remembered_asks_no_meter_again(metered: TestClient, store: Store) -> None:
    first = metered.post("/v1/predictions", json=REQUEST).json()
    [part] = store.lake.root.glob("set=pm_counters/date=*/part-meter.parquet")
    part.write_bytes(b"PAR1 no more")
    assert metered.post("/v1/predictions", json=REQUEST).json() == first
    assert first["energy"]["origin"] == "measured"
