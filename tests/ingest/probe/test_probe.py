import os
import pwd
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.ingest.descriptors import open_files
from tests.ingest.spooled import records, rows

import crosswind
from crosswind.data.schema.facts import Facts
from crosswind.data.schema.run import RunState
from crosswind.ingest.kernel.node_facts import node_facts
from crosswind.ingest.spool.records import rank_of, run_of
from crosswind.ingest.spool.registration import announced
from crosswind.ingest.spool.spool import recover, sealed_segments


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_a_run_its_rank_and_its_steps_are_written(tmp_path: Path) -> None:
    with crosswind.run(workload="toy", config={"batch": 8}, spool=tmp_path) as run:
        assert list(run.steps("abc")) == ["a", "b", "c"]
    [started, ended] = [run_of({k: v for k, v in value.items() if v is not None}) for value in records(tmp_path, "run")]
    assert (started.state, ended.state) == (RunState.RUNNING, RunState.COMPLETED)
    assert (ended.run_id, ended.workload, ended.configuration, ended.world_size) == (run.run_id, "toy", {"batch": 8}, 1)
    assert ended.ended_ns is not None
    [rank] = map(rank_of, records(tmp_path, "rank"))
    assert (rank.run_id, rank.rank, rank.pid) == (run.run_id, 0, os.getpid())
    assert rows(tmp_path, "step")["step"].tolist() == [0, 1, 2]
    assert set(rows(tmp_path, "step")["run_id"]) == {run.run_id}


def test_what_the_launcher_says_names_run_workload_and_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {
        "CROSSWIND_RUN_ID": "r7",
        "CROSSWIND_WORKLOAD": "toy",
        "CROSSWIND_SYSTEM": "lab",
        "CROSSWIND_NODE": "n3",
    }
    for name, value in {**variables, "RANK": "2", "WORLD_SIZE": "4", "CROSSWIND_SPOOL": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    with crosswind.run() as run:
        list(run.steps("a"))
    [started] = records(tmp_path, "run")  # how the run ended is for rank 0 to say
    assert [started[name] for name in ("run_id", "workload", "system", "world_size")] == ["r7", "toy", "lab", 4]
    assert started["facts"] == {}  # those of rank 0 stand for all
    [rank] = records(tmp_path, "rank")
    assert (rank["rank"], rank["node"]) == (2, "n3")


def test_the_first_rank_states_the_facts_of_its_node_and_its_software(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__="2.4.1", version=None))
    with crosswind.run(spool=tmp_path):
        pass
    [started, ended] = map(run_of, records(tmp_path, "run"))
    of_software = {"framework": "PyTorch", "framework_version": "2.4.1"}
    assert started.facts == ended.facts == Facts.of({**node_facts(), **of_software})


def test_what_is_written_is_sealed_now_and_then_while_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crosswind.ingest.probe.run.SEGMENT_SECONDS", 0.1)
    with crosswind.run(workload="toy", spool=tmp_path) as run:
        for _ in run.steps(range(4)):
            time.sleep(0.6)
        assert len(sealed_segments(tmp_path)) >= 1
        assert records(tmp_path, "run")[0]["state"] == RunState.RUNNING
        assert list(tmp_path.glob("*-rank0.open"))  # which says, if we are killed, that nobody ended the run


def test_a_rank_is_announced_while_its_run_lasts(tmp_path: Path) -> None:
    with crosswind.run(spool=tmp_path):
        [rank] = announced(tmp_path).ranks
        assert rank.pid == os.getpid()
    assert announced(tmp_path).ranks == ()


def test_steps_go_on_counting_over_epochs_and_a_left_step_is_left_out(tmp_path: Path) -> None:
    with crosswind.run(spool=tmp_path) as run:
        for _ in range(2):
            for batch in run.steps(range(10)):
                if batch == 3:
                    break
    assert rows(tmp_path, "step")["step"].tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (ValueError("loss is NaN"), "failed"),
        (KeyboardInterrupt(), "stopped"),
        (SystemExit(3), "failed"),
        (SystemExit(0), "completed"),
        (SystemExit(None), "completed"),
    ],
)
def test_an_error_of_the_loop_passes_and_ends_the_run(tmp_path: Path, error: BaseException, state: str) -> None:
    def train() -> None:
        with crosswind.run(spool=tmp_path) as run:
            for _ in run.steps("ab"):
                raise error

    with pytest.raises(type(error)) as raised:
        train()
    assert raised.value is error
    assert records(tmp_path, "run")[-1]["state"] == state


def test_settings_of_any_kind_become_a_record_that_the_catalog_takes(tmp_path: Path) -> None:
    config = {
        "lr": np.float32(0.5),
        "layers": np.int64(3),
        "fused": True,
        "betas": [0.9, 0.99],
        "resume": None,
        "clip": float("inf"),
        "text": "x" * 10_000,
        7: "seven",
    }
    with crosswind.run(spool=tmp_path, config=config):  # type: ignore[arg-type]  # as users do
        pass
    [value, _] = records(tmp_path, "run")
    configuration = dict(run_of({k: v for k, v in value.items() if v is not None}).configuration)
    assert len(str(configuration.pop("text"))) == 1000
    assert configuration == {
        "lr": 0.5,
        "layers": 3,
        "fused": True,
        "betas": "[0.9, 0.99]",
        "clip": "inf",
        "7": "seven",
    }


def test_a_name_that_a_record_would_refuse_is_made_readable(tmp_path: Path) -> None:
    with crosswind.run(spool=tmp_path, workload="toy\n" + "x" * 300):
        pass
    assert records(tmp_path, "run")[0]["workload"] == "toy?" + "x" * 196


def no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    (tmp_path / "file").touch()
    return {"spool": tmp_path / "file" / "spool"}


def no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    def nobody(uid: int) -> object:
        raise KeyError(uid)

    for name in ("HOME", "XDG_DATA_HOME", "CROSSWIND_HOME", "CROSSWIND_SPOOL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    return {}


def no_common_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    monkeypatch.setenv("WORLD_SIZE", "2")
    return {"spool": tmp_path}


def hostile_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    return {"spool": tmp_path, "run_id": "../../etc/passwd"}


def settings_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    return {"spool": tmp_path, "config": 5}


@pytest.mark.parametrize("trouble", [no_folder, no_home, no_common_id, hostile_id, settings_that_are_none])
def test_a_run_that_cannot_be_recorded_goes_on_and_keeps_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, trouble: object
) -> None:
    assert callable(trouble)
    with crosswind.run(**trouble(tmp_path, monkeypatch)) as run:
        tracemalloc.start()
        assert sum(1 for _ in run.steps(range(5000))) == 5000
        with run.phase("other"):
            pass
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert kept < 100_000  # recorded, these steps would hold a megabyte and a half
    [warning] = warnings(caplog)
    assert warning.startswith("crosswind does not record this run: ")


def test_a_wrong_phase_and_a_model_without_ddp_are_said_once_and_recording_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with crosswind.run(spool=tmp_path) as run:
        run.watch(object())
        for _ in run.steps("ab"):
            with run.phase("eval"):
                pass
    assert rows(tmp_path, "step")["step"].tolist() == [0, 1]
    unknown, wrong = warnings(caplog)
    assert unknown.startswith("crosswind cannot watch the collectives of this: watch(object): expected something of")
    assert wrong == "phase 'eval' counts as compute: expected one of checkpoint, other"


def test_a_closed_clock_file_costs_one_column_and_nothing_else(tmp_path: Path) -> None:
    def batches() -> Iterator[int]:
        yield 0
        for fd in Path("/proc/self/fd").iterdir():  # as a loader that makes itself a daemon does
            target = Path(os.path.realpath(fd))
            if target.name == "schedstat":
                os.close(int(fd.name))
        yield 1

    with crosswind.run(spool=tmp_path) as run:
        assert list(run.steps(batches())) == [0, 1]
    assert rows(tmp_path, "step")["run_queue_wait_seconds"].isna().tolist() == [False, True]


def test_runs_one_after_another_leave_no_file_and_no_thread_open(tmp_path: Path) -> None:
    files, threads = open_files(), set(threading.enumerate())
    for _ in range(5):
        with crosswind.run(spool=tmp_path) as run:
            list(run.steps("a"))
    with crosswind.run(spool=Path("/proc/nowhere")):
        pass
    assert not open_files() - files
    assert not set(threading.enumerate()) - threads


DISK_THAT_FILLS = """
import resource, sys, time
import crosswind

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

with crosswind.run(workload="toy", run_id="r1") as run:
    for step in run.steps(range(14)):
        time.sleep(0.1)
        if step == 1:
            limit(0)
        if step == int(sys.argv[1]):
            limit(resource.RLIM_INFINITY)
print("trained")
"""


def train_on_a_disk_that_fills(spool: Path, back_at_step: int) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"CROSSWIND_SPOOL": str(spool)}
    command = [sys.executable, "-c", DISK_THAT_FILLS, str(back_at_step)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)


def test_a_disk_that_is_full_for_a_while_costs_no_step(tmp_path: Path) -> None:
    done = train_on_a_disk_that_fills(tmp_path, 9)
    assert done.stdout == "trained\n"
    assert "keeps its rows in memory" in done.stderr
    assert rows(tmp_path, "step")["step"].tolist() == list(range(14))
    last = records(tmp_path, "run")[-1]
    assert (last["state"], last["tags"]) == ("completed", {})


def test_a_disk_that_stays_full_leaves_the_training_alone_and_the_run_unended(tmp_path: Path) -> None:
    done = train_on_a_disk_that_fills(tmp_path, 999)
    assert done.stdout == "trained\n"
    assert "could not record the end of this run" in done.stderr
    [report] = recover(tmp_path)
    assert report.torn_bytes == 0
    assert [value["state"] for value in records(tmp_path, "run")] == ["running"]
    assert len(records(tmp_path, "recovered")) == 1  # by which ingest calls the run lost


def test_runs_one_after_another_under_one_wrapper_are_parts_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSWIND_RUN_ID", "r8")
    ids = []
    for steps in ("", "a", "b"):  # one without steps, as when a script opens a run that it does not use, is no part
        with crosswind.run(spool=tmp_path) as run:
            ids.append(run.run_id)
            list(run.steps(steps))
    assert ids == ["r8", "r8", "r8-part2"]
    assert [record["tags"] for record in records(tmp_path, "run")] == [{}] * 4 + [{"part_of": "r8"}] * 2


def test_ranks_that_torchrun_started_again_are_a_run_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSWIND_RUN_ID", "r9")
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "2")
    monkeypatch.setenv("WORLD_SIZE", "3")
    with crosswind.run(spool=tmp_path) as run:
        list(run.steps("a"))
    assert run.run_id == "r9-restart2"
    assert records(tmp_path, "run")[0]["world_size"] == 3
