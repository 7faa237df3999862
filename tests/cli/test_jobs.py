"""`crosswind jobs` and `crosswind job`, on accounts that `crosswind ingest` stored."""

import json
from pathlib import Path

import pytest
from tests.cli.asking import Ask, asking
from tests.cli.conftest import steps_of
from tests.serving import answering

from crosswind.dashboards.wording import NONE
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.job import Job
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store

SECOND = 1_000_000_000
BEGIN = 1_767_320_000
ACCOUNTS = f"""\
JobIDRaw|User|Account|Partition|Submit|Start|End|ElapsedRaw|TimelimitRaw|State|ExitCode|NNodes|NCPUS|NodeList|TotalCPU|MaxRSS|ConsumedEnergyRaw|JobName
4711|ada|physics|batch|{BEGIN - 600}|{BEGIN}|{BEGIN + 3600}|3600|120|COMPLETED|0:0|2|16|n[1-2]|08:00:00||7200000|train
4711.0|||||{BEGIN}|{BEGIN + 3600}|3600||COMPLETED|0:0|2|16|n[1-2]|08:00:00|2097152K||train
4712|bob|physics|batch|{BEGIN}|{BEGIN + 10}|{BEGIN + 610}|600|10|TIMEOUT|0:0|1|8|n3|01:00:00||0|train
4713|ada|chemistry|batch|{BEGIN + 5}|Unknown|Unknown|0|UNLIMITED|PENDING|0:0|1|8|None assigned|00:00:00||0|relax
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CROSSWIND_SERVER", "CROSSWIND_DATABASE", "CROSSWIND_SPOOL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CROSSWIND_SYSTEM", "lab")
    return tmp_path / "home"


@pytest.fixture
def ask(home: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    return asking(capsys)


@pytest.fixture
def stored(home: Path, ask: Ask, tmp_path: Path) -> Path:
    """Three accounted jobs; the first held three runs, for half an hour of its hour."""
    (tmp_path / "sacct.txt").write_text(ACCOUNTS)
    assert ask("ingest", str(tmp_path / "sacct.txt"))[0] == 0
    with Store.open(home) as store:
        for number in range(3):
            began = (BEGIN + 600 * number) * SECOND
            run = Run(f"RUN000{number}", "toy", "lab", RunState.COMPLETED, 2, {"batch": 8}, job_id="4711")
            run = Run(**{**vars(run), "nodes": ("n1",), "started_ns": began, "ended_ns": began + 600 * SECOND})
            with store.catalog.write() as session:
                session.runs.merge(run)
            store.lake.append(f"steps-{number}", to_table(STEP, steps_of(run.run_id, number)))
    return home


@pytest.mark.usefixtures("stored")
def test_jobs_are_listed_newest_first_with_time_asked_and_used(ask: Ask) -> None:
    heading, *lines = ask("jobs")[1].splitlines()
    assert " ".join(heading.split()) == "job name user state nodes started limit used of it energy"
    assert [line.split()[0] for line in lines] == ["4712", "4711", "4713"]
    assert " ".join(lines[1].split()) == (
        "4711 train ada COMPLETED 2 2026-01-02 02:13:20 UTC 2 h 0 min 1 h 0 min 50 % 2.00 kWh"
    )
    assert lines[0].split()[-7:] == ["10", "min", "0", "s", "100", "%", NONE]
    assert "PENDING" in lines[2]


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    ("words", "job_ids"),
    [
        (("--user", "ada"), ["4711", "4713"]),
        (("--state", "TIMEOUT"), ["4712"]),
        (("--name", "train"), ["4712", "4711"]),
        (("--name", "train", "--limit", "1"), ["4712"]),
        (("--user", "nobody"), []),
        (("--system", "alps"), []),
        (("--name", "x' or '1'='1"), []),
    ],
)
def test_jobs_are_filtered(ask: Ask, words: tuple[str, ...], job_ids: list[str]) -> None:
    assert [job["job_id"] for job in json.loads(ask("jobs", "--json", *words)[1])] == job_ids


def test_without_jobs_it_says_how_they_come(ask: Ask) -> None:
    assert "crosswind sync slurm" in ask("jobs")[1]
    assert json.loads(ask("jobs", "--json")[1]) == []


@pytest.mark.usefixtures("stored")
def test_a_job_is_one_page(ask: Ask) -> None:
    code, said, _ = ask("job", "4711")
    assert code == 0
    lines = said.splitlines()
    assert lines[0] == "job 4711 on lab: train, COMPLETED, exit code 0"
    assert "ada, account physics, partition batch" in lines[1]
    assert "used 1 h 0 min of a limit of 2 h 0 min (50 %) after 10 min 0 s in the queue" in lines[2]
    assert "2, 16 processors: n1,n2" in said
    assert "processors busy 50 % of the time (8 h 0 min of CPU), 50 % of the job's time in runs" in said
    assert "largest task 2.15 GB" in said
    assert "2.00 kWh, as the scheduler meters, measured by job" in said
    runs = [line.split() for line in lines if line.startswith("RUN")]
    assert [line[:3] for line in runs] == [[f"RUN000{number}", "toy", "completed"] for number in range(3)]
    assert all(line[3:7] == ["10", "min", "0", "s"] for line in runs)


@pytest.mark.usefixtures("stored")
def test_what_is_not_known_of_a_job_is_not_made_up(ask: Ask) -> None:
    said = ask("job", "4713")[1]
    assert "used 0 s\n" in said
    assert "limit" not in said
    assert "energy      not metered" in said
    assert "crosswind run -- CMD in the job script records one" in said
    report = json.loads(ask("job", "4713", "--json")[1])
    assert (report["job"]["limit_seconds"], report["limit_ratio"], report["cpu_ratio"], report["runs"]) == (
        *(None, None, None),
        [],
    )


@pytest.mark.usefixtures("stored")
def test_a_job_that_is_not_stored_is_named(ask: Ask) -> None:
    assert ask("job", "99")[::2] == (
        2,
        "crosswind: job '99' is not stored: crosswind jobs lists those that are\n",
    )
    assert "of system 'alps'" in ask("job", "4711", "--system", "alps")[2]


def test_a_job_of_two_systems_asks_which(ask: Ask, stored: Path) -> None:
    with Store.open(stored) as store:
        store.jobs.put(Job("alps", "4711", state="FAILED"))
    code, _, complaint = ask("job", "4711")
    assert code == 2
    assert "is one of each of alps, lab: expected --system" in complaint
    assert "on alps" in ask("job", "4711", "--system", "alps")[1]


def test_a_server_says_the_same(ask: Ask, stored: Path) -> None:
    with answering(stored) as url:
        for words in (("jobs",), ("jobs", "--user", "ada"), ("job", "4711"), ("job", "4712", "--json")):
            assert ask(*words, "--server", url) == ask(*words)
        assert ask("job", "99", "--server", url)[0] == 2
