"""Trials evaluated by `crosswind tune exec`, through a real server: suggested, run, reported, released, resumed."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.cli.asking import answered
from tests.serving import answering

SPACE = {"x": {"kind": "ordinal", "values": [1, 2, 4]}, "fast": {"kind": "boolean"}}
QUIET = ("--no-agent", "--no-inject")
LOSS = ("--objective-pattern", r"loss=(\S+)")


@dataclass(frozen=True)
class Command:
    """`crosswind tune` in processes of its own."""

    folder: Path
    server: str

    def environment(self, **more: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("CROSSWIND_", "SLURM_"))}
        mine = {"CROSSWIND_HOME": str(self.folder / "client"), "CROSSWIND_SERVER": self.server}
        return kept | mine | more

    def start(self, *words: str, **more: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "crosswind.cli.main", "tune", *words]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, text=True, cwd=self.folder, env=self.environment(**more), **pipes)

    def __call__(self, *words: str, **more: str) -> tuple[int, str, str]:
        process = self.start(*words, **more)
        said, complained = process.communicate(timeout=60)
        return process.returncode, said, complained

    def here(self, *words: str, **more: str) -> tuple[int, str, str]:
        """Return code, output and complaint of what needs no process of its own."""
        return answered(self.environment(**more), "tune", *words)

    def create(self, name: str, space: Mapping[str, object] = SPACE, *words: str) -> None:
        file = self.folder / f"{name}.json"
        file.write_text(json.dumps(space))
        code, _, complained = self.here("create", name, str(file), "--objective", "loss", *words)
        assert code == 0, complained

    def trials(self, name: str) -> list[dict[str, Any]]:
        trials: list[dict[str, Any]] = json.loads(self.here("status", name, "--json")[1])["trials"]
        return trials


@pytest.fixture(scope="module")
def tune(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    folder = tmp_path_factory.mktemp("tune")
    with answering(folder / "server") as url:
        yield Command(folder, url)


@pytest.mark.thorough
def test_a_trial_is_run_recorded_and_told_and_the_budget_ends(tune: Command) -> None:
    tune.create("whole", SPACE, "--trials", "2")
    shell = ("bash", "-c", 'echo loss={x}; echo "$CROSSWIND_PARAM_X $CROSSWIND_TRIAL" > seen')
    code, said, complained = tune("exec", "whole", *QUIET, *LOSS, "--trials", "5", "--", *shell)
    assert code == 0, complained
    records = tune.trials("whole")
    assert [record["trial"]["state"] for record in records] == ["done", "done"]
    assert said.splitlines() == [f"loss={record['trial']['configuration']['x']}" for record in records]
    assert [record["trial"]["objective"] for record in records] == [
        record["trial"]["configuration"]["x"] for record in records
    ]
    assert records[0]["outcomes"]["run_seconds"] > 0
    last = records[-1]["trial"]
    assert (tune.folder / "seen").read_text().split() == [str(last["configuration"]["x"]), last["trial_id"]]
    assert tune("exec", "whole", *QUIET, "--", "true")[0] == 4
    assert tune("next", "whole")[0] == 4


def test_a_failing_an_infeasible_and_a_stopped_program_end_their_trials(tune: Command) -> None:
    tune.create("ends")
    codes = [
        tune("exec", "ends", *QUIET, "--", "bash", "-c", "exit 4")[0],
        tune("exec", "ends", *QUIET, "--infeasible", "9", "--", "bash", "-c", "exit 9")[0],
        tune("exec", "ends", *QUIET, "--limit", "0.3", "--", "sleep", "30")[0],
        tune("exec", "ends", *QUIET, "--", "true")[0],
    ]
    assert codes == [1, 9, 3, 1]
    records = tune.trials("ends")
    assert [record["trial"]["state"] for record in records] == ["failed", "infeasible", "pruned", "failed"]
    assert "exit code 4" in records[0]["reason"]
    assert "objective loss is not among" in records[3]["reason"]


def test_a_program_that_stops_itself_is_pruned_unless_its_code_says_that_it_cannot_run(tune: Command) -> None:
    tune.create("threes")
    tune("exec", "threes", *QUIET, "--", "bash", "-c", "exit 3")
    tune("exec", "threes", *QUIET, "--infeasible", "3", "--", "bash", "-c", "exit 3")
    assert [record["trial"]["state"] for record in tune.trials("threes")] == ["pruned", "infeasible"]


def test_a_worker_waits_while_its_study_is_paused_and_ends_once_it_is_stopped(tune: Command) -> None:
    tune.create("held", {"x": {"kind": "int", "low": 1, "high": 1000}})
    assert tune.here("pause", "held")[0] == 0
    words = ("exec", "held", *QUIET, *LOSS, "--trials", "500", "--no-ingest", "--", "bash", "-c", "echo loss={x}")
    worker, interrupted = tune.start(*words), tune.start(*words)
    for process in (worker, interrupted):
        assert process.stderr
        assert "is paused: it hands out no trial until somebody resumes it: waiting" in process.stderr.readline()
    interrupted.send_signal(signal.SIGTERM)
    assert interrupted.communicate(timeout=30)[1].endswith("before a program was started\n")
    assert (interrupted.returncode, tune.trials("held")) == (75, [])
    tune.here("resume", "held")
    assert worker.stdout
    assert worker.stdout.readline().startswith("loss=")
    tune.here("stop", "held")
    worker.communicate(timeout=30)
    assert (worker.returncode, {record["trial"]["state"] for record in tune.trials("held")}) == (0, {"done"})
    code, _, complained = tune.here(*words)
    assert (code, "held has nothing more to try: it was stopped" in complained) == (4, True)


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGUSR1, marks=pytest.mark.thorough)])
def test_a_preempted_trial_goes_back_with_its_checkpoint_and_the_same_job_resumes_it(
    tune: Command, number: signal.Signals
) -> None:
    name = f"back-{number}"
    tune.create(name)
    program = (
        'if [ -f "$CROSSWIND_CHECKPOINT" ]; then echo loss=7; exit 0; fi; '
        "trap 'echo saved > \"$CROSSWIND_CHECKPOINT\"; exit 0' TERM USR1; "
        f"touch running-{number}; while :; do sleep 0.1; done"
    )
    words = ("exec", name, *QUIET, *LOSS, "--checkpoint", "{trial}.pt", "--", "bash", "-c", program)
    job = {"SLURM_JOB_ID": f"77{number}"}
    process = tune.start(*words, **job)
    wait_for(tune.folder / f"running-{number}")
    process.send_signal(number)
    _, complained = process.communicate(timeout=60)
    assert process.returncode == 75, complained
    [given_back] = tune.trials(name)
    assert given_back["trial"]["state"] == "released"
    assert given_back["checkpoint"] == str(tune.folder / f"{given_back['trial']['trial_id']}.pt")
    assert tune(*words, **job, SLURM_RESTART_COUNT="1")[0] == 0
    [resumed] = tune.trials(name)
    assert (resumed["trial"]["trial_id"], resumed["trial"]["objective"]) == (given_back["trial"]["trial_id"], 7)


def test_only_rank_0_asks_and_the_others_run_the_same_trial(tune: Command) -> None:
    tune.create("ranks")
    step = {"SLURM_JOB_ID": "88", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2"}
    shell = ("bash", "-c", "echo rank $SLURM_PROCID of {trial} in $CROSSWIND_RUN_ID; echo loss=1")
    words = ("exec", "ranks", *QUIET, *LOSS, "--", *shell)
    processes = [tune.start(*words, **step, SLURM_PROCID=rank) for rank in ("1", "0")]
    said = [process.communicate(timeout=60)[0].splitlines()[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert [words[1] for words in said] == ["1", "0"]
    assert said[0][2:] == said[1][2:]
    [record] = tune.trials("ranks")
    assert (record["trial"]["state"], record["run_id"]) == ("done", said[0][-1])


def test_a_tell_that_nobody_takes_is_told_by_the_next_call(tune: Command) -> None:
    tune.create("later")
    [suggestion] = json.loads(tune.here("next", "later", "--json")[1])
    spool = {"CROSSWIND_SPOOL": str(tune.folder / "spool")}
    outbox = Command(tune.folder, "http://127.0.0.1:9")
    code, _, complained = outbox.here("tell", "later", suggestion["trial_id"], "2.5", **spool)
    assert (code, "reported by the next call" in complained) == (0, True)
    [kept] = (tune.folder / "spool" / "tune-outbox").glob("*.json")
    kept.write_text(kept.read_text().replace("http://127.0.0.1:9", tune.server))
    assert tune.here("next", "later", **spool)[0] == 0
    first = tune.trials("later")[0]
    assert (first["trial"]["state"], first["trial"]["objective"]) == ("done", 2.5)
    assert list((tune.folder / "spool" / "tune-outbox").glob("*.json")) == []


def test_the_server_gets_the_record_of_the_run(tune: Command) -> None:
    tune.create("recorded", SPACE, "--trials", "2")
    code, _, complained = tune("exec", "recorded", *QUIET, *LOSS, "--", "bash", "-c", "echo loss=1")
    assert (code, "shipped to" in complained) == (0, True), complained
    [record] = tune.trials("recorded")
    with urllib.request.urlopen(f"{tune.server}v1/runs/{record['run_id']}") as answer:
        assert json.load(answer)["tags"]["study"] == "recorded"
    kept = {"CROSSWIND_SPOOL": str(tune.folder / "kept")}
    code, _, complained = tune(
        "exec", "recorded", *QUIET, *LOSS, "--no-ingest", "--", "bash", "-c", "echo loss=1", **kept
    )
    assert (code, "shipped" in complained) == (0, False)
    assert list((tune.folder / "kept").glob("*.segment")) != []


def test_what_the_service_cannot_take_is_kept_and_said(tune: Command) -> None:
    tune.create("many", SPACE, "--trials", "2")
    program = "import json; json.dump(dict.fromkeys([*map(str, range(1001)), 'loss'], 1), open('many.json', 'w'))"
    words = ("exec", "many", *QUIET, "--objective-from", "many.json", "--", sys.executable, "-c", program)
    code, _, complained = tune(*words)
    assert (code, "outcomes" in complained, "tune-outbox" in complained) == (0, True, True), complained
    assert "refused" in tune(*words)[2]
    kept = [*(tune.folder / "client").rglob("refused/*.json")]
    assert [len(json.loads(path.read_text())["tell"]["outcomes"]) > 1000 for path in kept] == [True]


def test_wrong_input_is_refused_by_name(tune: Command) -> None:
    tune.create("wrong")
    code, _, complained = tune.here("exec", "wrong", *QUIET, "--", "echo", "{y}")
    assert (code, "{y} is none of" in complained) == (2, True)
    assert tune.trials("wrong") == []
    for words, reason in (
        (("exec", "wrong"), "expected a program after --"),
        (("exec", "nothing", "--", "true"), "nothing"),
        (("tell", "wrong", "T"), "expected either an objective"),
        (("tell", "wrong", "T", "nan"), "expected a finite number"),
        (("tell", "wrong", "T", "1"), "trial 'T' is not in study"),
    ):
        code, _, complained = tune.here(*words)
        assert (code, reason in complained) == (2, True), complained


def wait_for(path: Path) -> None:
    """Until a file is there."""
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, path
        time.sleep(0.05)
