"""Runs on a host whose hypervisor takes time, as their ranks and an agent record it, by `ingest` and `explain`."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.asking import Ask, asking

from crosswind.data.schema.metric import with_node_keys
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.steps import STEP
from crosswind.ingest.collectors.cpu import CPU, TICK_SECONDS
from crosswind.ingest.spool.spool import SpoolWriter

STEPS, RANKS, CORES, IDLE_CORES, SECOND = 40, 2, 2, 6, 10**9
WORK, FABRIC = 0.040, 0.006  # seconds of a step on a core that nobody takes away
SAMPLED_SECONDS = 0.1


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CROSSWIND_SYSTEM", "guests")
    monkeypatch.delenv("CROSSWIND_SPOOL", raising=False)
    return asking(capsys)


def record(spool: Path, number: int, lost: Floats, stolen: Floats, devices: tuple[str, ...]) -> str:
    """Write a run of two ranks on one node, and the samples of its cores.

    lost, stolen: seconds of each step that the ranks lost, a seventh of that in collectives, and that each core was
    away, shape (STEPS,).
    """
    run_id, began = f"run{number}", 1_700_000_000 * SECOND + number * 600 * SECOND
    random = np.random.default_rng(number)
    work = WORK * random.normal(1, 0.01, (STEPS, RANKS)) + lost[:, None] * 6 / 7
    fabric = FABRIC * random.normal(1, 0.02, STEPS) + lost / 7
    time = work.max(axis=1) + fabric
    with SpoolWriter(spool, run_id) as writer:
        ended = {"started_ns": began, "ended_ns": began + int(time.sum() * SECOND)}
        of_run = {"run_id": run_id, "workload": "toy", "system": "guests", "state": "completed", "world_size": RANKS}
        writer.append_record("run", {**of_run, **ended, "nodes": ["n1"]})
        for rank in range(RANKS):
            writer.append_record("rank", {"run_id": run_id, "rank": rank, "node": "n1", "pid": 100 + rank})
            writer.append_rows(STEP, _steps(run_id, rank, began, work[:, rank], time))
        writer.append_rows(with_node_keys(CPU), _samples(began, time, stolen, devices))
    return run_id


def _steps(run_id: str, rank: int, began: int, work: Floats, time: Floats) -> dict[str, list[object]]:
    starts = began + (np.cumsum(time) - time) * SECOND
    seconds = {"duration_seconds": time, "compute_seconds": work, "comm_seconds": time - work}
    seconds["cpu_user_seconds"] = np.full(STEPS, 0.95 * WORK)
    columns: dict[str, list[object]] = {column.name: [0] * STEPS for column in STEP.columns}
    columns |= {name: (values * SECOND).astype(int).tolist() for name, values in seconds.items()}
    return columns | {
        "ts_ns": starts.astype(int).tolist(),
        "run_id": [run_id] * STEPS,
        "rank": [rank] * STEPS,
        "step": list(range(STEPS)),
    }


def _samples(began: int, time: Floats, stolen: Floats, devices: tuple[str, ...]) -> dict[str, list[object]]:
    """Return what an agent samples of cores that have work for as long as they are there; others of the node idle."""
    moments = np.arange(-0.5, time.sum() + 0.5, SAMPLED_SECONDS)
    away = np.interp(moments, np.cumsum(time), np.cumsum(stolen), left=0.0)
    rows: dict[str, list[object]] = {column.name: [] for column in with_node_keys(CPU).columns}
    for device in devices:
        cores = CORES if device == "all" else 1
        grown = {"idle_seconds_total": IDLE_CORES / cores * (moments - moments[0]) * (device == "all")}
        grown |= {"steal_seconds_total": away, "user_seconds_total": moments - moments[0] - away}
        for place, moment in enumerate(moments):
            keys = {"ts_ns": began + int(moment * SECOND), "mono_ns": int((moment + 10) * SECOND)}
            row = dict.fromkeys(rows) | keys | {"node": "n1", "device": device, "boot_id": f"boot{began}"}
            row |= {name: 0 for name in rows if name.endswith("_seconds_total")}
            row |= {name: round(cores * float(values[place]) / TICK_SECONDS) for name, values in grown.items()}
            for name, value in row.items():
                rows[name].append(value)
    return rows


def asked(ask: Ask, spool: Path, lost: Floats, stolen: Floats, devices: tuple[str, ...]) -> dict[str, object]:
    nothing = np.zeros(STEPS)
    for number in range(6):
        record(spool, number, nothing, nothing, devices)
    run_id = record(spool, 6, lost, stolen, devices)
    assert ask("ingest", str(spool))[0] == 0
    code, said, _ = ask("explain", run_id, "--json")
    assert code == 0
    answer: dict[str, object] = json.loads(said)
    return answer


STEADY = np.full(STEPS, 0.014)  # of 60 ms
ONCE = np.where(np.arange(STEPS) == 20, 0.6, 0.0)


@pytest.mark.parametrize("lost", [STEADY, ONCE], ids=["all the time", "once"])
@pytest.mark.parametrize("devices", [("cpu0", "cpu1"), ("all",), ("all", "cpu0", "cpu1")])
def test_a_run_that_lost_time_to_other_guests_is_said_to(
    tmp_path: Path, ask: Ask, lost: Floats, devices: tuple[str, ...]
) -> None:
    answer = asked(ask, tmp_path / "spool", lost, lost, devices)
    assert (answer["verdict"], answer["cause"]) == ("slow", "cpu_steal"), answer["sentence"]
    assert "stall" not in str(answer["sentence"])
    assert "exclude" not in str(answer["next_action"])  # there is no other node


@pytest.mark.parametrize(("lost", "cause"), [(STEADY, "unknown"), (ONCE, "stall")], ids=["all the time", "once"])
def test_without_stolen_time_nobody_blames_the_hypervisor(tmp_path: Path, ask: Ask, lost: Floats, cause: str) -> None:
    answer = asked(ask, tmp_path / "spool", lost, np.zeros(STEPS), ("all", "cpu0", "cpu1"))
    assert (answer["verdict"], answer["cause"]) == ("slow", cause), answer["sentence"]
