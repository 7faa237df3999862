"""`recorded/flux_archive`: events, R and the form of a jobspec are the examples of Flux's RFCs; the rest is made up.

Source: Flux RFC 18 and 21 (events of the first job), 20 (its R, example 2), 25 (jobspec); flux-core, the columns of
job-archive.c, where every value is a text.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.job import Job
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.formats import reader_for
from crosswind.ingest.readers.schedulers.flux import f58
from crosswind.ingest.readers.schedulers.flux_archive import FluxArchiveReader, idset_size, job_number
from crosswind.ingest.readers.search import candidates_below

RECORDED = RECORDINGS / "flux_archive"
LINES = RECORDED / "jobs.jsonl"
ENDED, CANCELLED, TIMED_OUT = (json.loads(line) for line in LINES.read_text().splitlines())
FOLDER = RECORDED / "6731191091817518"
EVENTS = [json.loads(line) for line in ENDED["eventlog"].splitlines()]
JOBSPEC = json.loads(ENDED["jobspec"])


def read(path: Path) -> tuple[list[Job], Report]:
    report = Report(str(path), "flux_archive")
    return list(FluxArchiveReader().read(path, report, Context("test"))), report


def changed(folder: Path, **values: Any) -> tuple[list[Job], Report]:
    path = folder / "jobs.jsonl"
    path.write_text("".join(f"{json.dumps(job)}\n" for job in (ENDED | values, CANCELLED)))
    return read(path)


def with_events(folder: Path, *events: dict[str, Any]) -> Job:
    return changed(folder, eventlog=list(events))[0][0]


def event(name: str, timestamp: float = 1552593349.0, **context: Any) -> dict[str, Any]:
    return {"timestamp": timestamp, "name": name, "context": context}


def test_a_job_has_everything_that_is_kept_of_it() -> None:
    jobs, report = read(LINES)
    assert jobs[0] == Job(
        system="test",
        job_id="ƒuZZybuNNy",
        name="train",
        user="5588",
        account="guests",
        partition="pbatch",
        state="COMPLETED",
        exit_code=0,
        nodes=("host0", "host1", "host2", "host3"),
        node_count=4,
        cpu_count=24,  # two nodes of 8 cores, two of 4
        submitted_ns=1552593348_073045000,
        started_ns=1552593348_088391000,
        ended_ns=1552593348_090927000,
        elapsed_seconds=0.002536,
        fields={
            "id": "6731191091817518",
            "status": "COMPLETED",
            "duration": "3600.0",
            "cwd": "/home/ada",
            "command": "/opt/train/app --epochs 3",
            "expiration": "1790598600",
            "urgency": "16",
            "priority": "42",
            "waitstatus": "0",
            "ngpus": "2",
        },
    )
    assert (report.read, report.skipped, report.notes) == (3, 0, [])


def test_a_folder_of_a_job_has_the_same_as_its_line() -> None:
    assert read(FOLDER)[0] == read(LINES)[0][:1]


def test_folders_of_jobs_are_found_by_their_names_and_files(tmp_path: Path) -> None:
    for name in ("6731191091817518", "ƒuZZybuNNy", "fuZZybuNNy", "0017.e9fb.8df1.6c2e", "job.17", "not-an-id"):
        shutil.copytree(FOLDER, tmp_path / name)
    shutil.copytree(FOLDER, tmp_path / "18")
    (tmp_path / "18" / "eventlog").unlink()
    readers = [(file.path.name, file.reader.name) for file in candidates_below(tmp_path) if file.reader]
    assert readers == [
        (name, "flux_archive")
        for name in ("0017.e9fb.8df1.6c2e", "6731191091817518", "fuZZybuNNy", "job.17", "ƒuZZybuNNy")
    ]
    assert {read(tmp_path / name)[0][0].job_id for name, _ in readers} == {"ƒuZZybuNNy", "ƒJ"}


def test_a_job_that_was_cancelled_in_the_queue_never_started() -> None:
    job = read(LINES)[0][1]
    assert (job.state, job.fields["status"], job.exit_code, job.signal) == ("CANCELLED", "CANCELED", None, None)
    assert (job.started_ns, job.ended_ns, job.elapsed_seconds) == (None, 1552593986_335602000, None)
    assert (job.name, job.nodes, job.node_count, job.cpu_count) == ("hostname", (), None, None)
    assert (job.fields["exception.type"], job.fields["exception.note"]) == ("cancel", "no longer wanted")


def test_a_job_over_its_time_ended_when_that_was_noticed() -> None:
    job = read(LINES)[0][2]
    assert (job.state, job.exit_code, job.signal, job.elapsed_seconds) == ("TIMEOUT", 142, 14, 60.0)
    assert (job.nodes, job.cpu_count, job.fields["waitstatus"]) == (("host3",), 1, "36352")


@pytest.mark.parametrize(
    ("count", "state", "word"),
    [
        (1, "PENDING", "NEW"),
        (2, "PENDING", "DEPEND"),
        (3, "PENDING", "PRIORITY"),
        (4, "PENDING", "SCHED"),
        (5, "RUNNING", "RUN"),
        (6, "RUNNING", "RUN"),
        (7, "COMPLETING", "CLEANUP"),
        (9, "COMPLETING", "CLEANUP"),
        (10, "COMPLETED", "COMPLETED"),
    ],
)
def test_the_events_so_far_are_the_state(tmp_path: Path, count: int, state: str, word: str) -> None:
    job = with_events(tmp_path, *EVENTS[:count])
    assert (job.state, job.fields["status"]) == (state, word)


@pytest.mark.parametrize(
    ("events", "state"),
    [
        ([event("finish", status=256), event("clean")], "FAILED"),
        ([event("exception", type="cancel", severity=0), event("finish", status=15), event("clean")], "CANCELLED"),
        ([event("exception", type="timelimit", severity=0), event("finish", status=15), event("clean")], "TIMEOUT"),
        ([event("exception", type="oom", severity=0), event("finish", status=9), event("clean")], "FAILED"),
        ([event("exception", type="cancel", severity=1), event("finish", status=256), event("clean")], "FAILED"),
        ([event("exception", type="cancel", severity=1), event("finish", status=0), event("clean")], "COMPLETED"),
    ],
)
def test_how_a_job_ended_is_what_flux_says(tmp_path: Path, events: list[dict[str, Any]], state: str) -> None:
    assert with_events(tmp_path, *EVENTS[:6], *events).state == state


def test_a_jobspec_that_was_updated_is_the_newer_one(tmp_path: Path) -> None:
    update = event("jobspec-update")
    update["context"] = {"attributes.system.queue": "pdebug", "attributes.system.duration": 60}
    job = with_events(tmp_path, *EVENTS, update)
    assert (job.partition, job.fields["duration"], job.account) == ("pdebug", "60", "guests")


def test_a_restart_of_flux_takes_a_job_nowhere(tmp_path: Path) -> None:
    again = [event("flux-restart"), event("priority", priority=7)]
    job = with_events(tmp_path, *EVENTS[:6], *again)
    assert (job.state, job.fields["priority"], job.started_ns) == ("RUNNING", "7", 1552593348_088391000)


def test_the_environment_of_a_job_is_not_kept() -> None:
    assert "hunter2" in ENDED["jobspec"]
    assert "hunter2" not in repr(read(LINES)[0])


def test_a_bad_event_is_skipped_and_the_others_hold(tmp_path: Path) -> None:
    lines = ENDED["eventlog"].splitlines()
    lines[7] = '{"timestamp":1552593348.088391,"name":"alloc",context:{"note":"rank0/core[0-1]"}}'  # as RFC 18 has it
    jobs, report = changed(tmp_path, eventlog="\n".join(lines))
    assert [job.state for job in jobs] == ["COMPLETED", "CANCELLED"]
    [skipped] = report.quoted
    assert (skipped.line, skipped.text) == (1, lines[7])
    assert skipped.reason.startswith("event: no JSON: ")


def test_an_event_of_a_folder_has_the_line_of_its_log(tmp_path: Path) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "7")
    (folder / "eventlog").write_text(ENDED["eventlog"][:-10])  # still being written
    [job], report = read(folder)
    assert (job.state, [skipped.line for skipped in report.quoted]) == ("COMPLETING", [10])


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"id": None}, "id NoneType; expected a number, or an id such as ƒuZZybuNNy"),
        ({"id": -1}, "id -1; expected a number"),
        ({"id": True}, "id True; expected a number"),
        ({"id": "ƒ0OIl"}, "id '\\u01920OIl'; expected a number"),
        ({"id": 1 << 64}, "id 18446744073709551616; expected a number"),
        ({"eventlog": ""}, "eventlog: no event that begins a state; expected submit"),
        ({"eventlog": None}, "eventlog is of type NoneType; expected lines of events, or a list of them"),
        ({"jobspec": None}, "jobspec is of type NoneType; expected an object"),
        ({"jobspec": "{"}, "jobspec: no JSON: "),
        ({"jobspec": {"attributes": {"system": {"cwd": "a\0b"}}}}, "'a\\x00b' is no text"),
        ({"R": {"version": 1}}, "R: no list execution.R_lite, or a nodelist that is none"),
        ({"R": {"execution": {"R_lite": [], "nodelist": "n1"}}}, "R: no list execution.R_lite, or a nodelist"),
        ({"R": {"execution": {"R_lite": [{"rank": "3-1"}]}}}, "R: rank '3-1'; expected numbers such as 0-3,7"),
        ({"R": {"execution": {"R_lite": [], "nodelist": ["n[1-999999999]"]}}}, "node list 'n[1-999999999]' stands"),
    ],
)
def test_a_bad_job_is_skipped_with_its_line_and_reason(tmp_path: Path, values: dict[str, Any], reason: str) -> None:
    jobs, report = changed(tmp_path, **values)
    assert [job.fields["id"] for job in jobs] == ["12402053611520"]
    [skipped] = report.quoted
    assert skipped.line == 1
    assert skipped.reason.startswith(reason)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"name": "start"}, "event: timestamp is missing"),
        ({"timestamp": 0, "name": "start"}, "event: timestamp is missing"),
        ({"timestamp": "noon", "name": "start"}, "timestamp 'noon'; expected seconds since 1970"),
        ({"timestamp": 1.0, "name": 7}, "event: name '7' and context; expected a text and an object"),
        ({"timestamp": 1.0, "name": "start", "context": [1]}, "event: name 'start' and context; expected a text and"),
        (event("finish", status="0"), "status '0'; expected a whole number"),
        (event("exception", severity=-1), "severity '-1'; expected a whole number"),
        (["start"], "event is of type list; expected an object"),
    ],
)
def test_an_event_that_is_none_is_reported(tmp_path: Path, bad: Any, reason: str) -> None:
    jobs, report = changed(tmp_path, eventlog=[*EVENTS[:6], bad])
    assert (jobs[0].state, len(jobs), report.skipped) == ("RUNNING", 2, 1)
    assert report.quoted[0].reason.startswith(reason)


@pytest.mark.parametrize("name", ["id", "eventlog", "jobspec", "R"])
@pytest.mark.parametrize("depth", [900, 960, 980, 990, 100_000])
def test_what_is_nested_too_deep_is_skipped(tmp_path: Path, name: str, depth: int) -> None:
    path = tmp_path / "jobs.jsonl"
    others = json.dumps({key: text for key, text in ENDED.items() if key != name})
    deep = "[" * depth + "]" * depth
    path.write_text(f'{others[:-1]}, "{name}": {deep}}}\n{json.dumps(CANCELLED)}\n')
    jobs, _report = read(path)
    assert jobs[-1].fields["id"] == "12402053611520"


@pytest.mark.parametrize("job_id", ["6731191091817518", 6731191091817518, "ƒuZZybuNNy", "fuZZybuNNy", "job.ƒuZZybuNNy"])
def test_every_form_of_an_id_is_the_same_job(job_id: object) -> None:
    assert f58(job_number(job_id)) == "ƒuZZybuNNy"
    assert job_number(f"{6731191091817518 >> 48:04x}.e9fb.8df1.6c2e") == 6731191091817518


@pytest.mark.parametrize(
    ("idset", "size"), [("7", 1), ("0-3", 4), ("[0-3,5]", 5), ("0,2-3,9", 4), (3, 1), ("", 0), (None, 0)]
)
def test_the_size_of_a_set_is_how_many_numbers_it_has(idset: object, size: int) -> None:
    assert idset_size("core", idset) == size


def test_lines_are_recognised_and_lists_of_jobs_are_left_to_the_other_reader() -> None:
    assert reader_for(LINES).name == "flux_archive"
    assert not FluxArchiveReader().recognises(Path("x"), (RECORDED.parent / "flux" / "job-list.jsonl").read_bytes())
