"""`crosswind predict` about a device where a workload has run once, from a table of other devices' runs."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.asking import Ask, asking

from crosswind.models.energy.power_limit import PowerLimitCurve

BATCHES, LIMITS = (8, 32, 128), (100, 150, 200, 250)
JOBS = {"resnet": (2000.0, 30.0, 150.0), "bert": (600.0, 60.0, 180.0), "ncf": (500.0, 1.0, 3.0)}
DEVICES = {"old": (1.0, 35.0), "older": (0.6, 30.0), "new": (2.0, 60.0)}
HEADER = "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\n"
ASKED = ("predict", "--workload", "images/resnet", "--system", "new", "--ranks", "1", "--config", "optimizer=sgd")


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    for name in ("CROSSWIND_SERVER", "CROSSWIND_TOKEN", "CROSSWIND_TOKEN_FILE", "CROSSWIND_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return asking(capsys)


def measured(device: str, job: str, batch: int, limit: int) -> tuple[float, float]:
    """Seconds and watts by the law of power limits, on a device of this speed and static power."""
    (speed, static), (launch, compute, dynamic) = DEVICES[device], JOBS[job]
    free = float((launch / batch) ** 2 + compute**2) ** 0.5
    demand = dynamic * compute / free
    headroom, curve = np.log([(limit - static) / demand]), PowerLimitCurve()
    slower, drawn = np.exp(curve.log_slowdown(headroom)[0]), np.exp(curve.log_draw(headroom)[0])
    return float(free * slower / speed), float(static + demand * drawn)


def ingest(ask: Ask, device: str, batches: tuple[int, ...], limits: tuple[int, ...]) -> None:
    rows = product(JOBS, batches, limits)
    lines = [
        f"images,{job},{batch},sgd,{limit},{seconds},{watts}\n"
        for job, batch, limit in rows
        for seconds, watts in (measured(device, job, batch, limit),)
    ]
    Path(f"{device}.csv").write_text(HEADER + "".join(lines))
    assert ask("ingest", f"{device}.csv", "--system", device)[0] == 0


def answer(ask: Ask, batch: int, limit: int) -> dict[str, Any]:
    settings = ("--config", f"batch_size={batch}", "--config", f"power_limit={limit}")
    code, said, complaint = ask(*ASKED, *settings, "--outcome", "run", "--json")
    assert code == 0, complaint
    made: dict[str, Any] = json.loads(said)
    return made | {"at": {quantile["level"]: quantile["seconds"] for quantile in made["quantiles"]}}


def test_one_run_a_workload_scales_other_devices_times_and_power_also_under_a_limit(ask: Ask) -> None:
    for device in ("old", "older"):
        ingest(ask, device, BATCHES, LIMITS)
    ingest(ask, "new", (32,), (250,))
    for batch, limit in ((8, 250), (128, 250), (128, 150)):
        made, (seconds, watts) = answer(ask, batch, limit), measured("new", "resnet", batch, limit)
        assert made["basis"] == "workload"
        assert made["at"][0.5] == pytest.approx(seconds, rel=0.15)
        assert made["at"][0.05] < seconds < made["at"][0.95]
        energy = made["energy"]
        assert energy["joules"] / made["at"][0.5] == pytest.approx(watts, rel=0.15)
        assert energy["low_joules"] < seconds * watts < energy["high_joules"]
        assert (energy["basis"], energy["metered_runs"], energy["node_count"]) == ("workload", 1, 1)


def test_a_device_with_many_metered_runs_tells_its_own_power_between_them(ask: Ask) -> None:
    ingest(ask, "new", BATCHES, LIMITS)
    made, (_, watts) = answer(ask, 64, 125), measured("new", "resnet", 64, 125)
    assert made["energy"]["node_watts"] == pytest.approx(watts, rel=0.08)
