import os
import shutil
import time
from pathlib import Path

import pytest
from tests.ingest.descriptors import none_left
from tests.ingest.trees import recorded_tree

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.metric import Sample
from crosswind.ingest.collectors.process import PROCESS, ProcessCollector

RECORDED = recorded_tree("two_cores") / "proc"


def read(proc: Path, *pids: int) -> list[Sample]:
    return list(ProcessCollector(lambda: pids, proc).read())


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    shutil.copytree(RECORDED / "4242", tmp_path / "4242")
    return tmp_path


def test_the_fields_are_found_behind_a_name_with_blanks_and_parentheses() -> None:
    [process] = read(RECORDED, 4242)
    assert process.device == "4242"
    assert process.values["minor_page_faults_total"] == 1026
    assert process.values["threads"] == 3
    assert process.values["start_ticks"] == 169354
    assert PROCESS.convert(process)["user_seconds_total"] == pytest.approx(0.16)
    assert PROCESS.convert(process)["resident_bytes"] == 9500 * 1024
    assert process.values["main_thread_involuntary_context_switches_total"] == 11
    assert (process.values["written_bytes_total"], process.values["storage_written_bytes_total"]) == (5007, 0)


def test_the_wait_for_a_core_is_summed_over_the_threads() -> None:
    [process] = read(RECORDED, 4242)
    assert process.values["run_queue_wait_seconds_total"] == 45358429 + 277139619 + 286440229
    assert process.values["main_thread_run_queue_wait_seconds_total"] == 45358429
    assert PROCESS.convert(process)["main_thread_run_seconds_total"] == pytest.approx(0.013846645)


def test_the_sums_keep_what_an_ended_thread_had(proc: Path) -> None:
    collector = ProcessCollector(lambda: [4242], proc)
    [before] = collector.read()
    shutil.rmtree(proc / "4242" / "task" / "4243")
    (proc / "4242" / "task" / "4244" / "schedstat").write_text("77768700 286440300 88\n")
    [after] = collector.read()
    assert after.values["run_seconds_total"] == before.values["run_seconds_total"] + 77768700 - 77768641  # type: ignore[operator]
    assert after.values["run_queue_wait_seconds_total"] == 45358429 + 277139619 + 286440300


def test_a_thread_id_used_again_is_another_thread(proc: Path) -> None:
    collector = ProcessCollector(lambda: [4242], proc)
    list(collector.read())
    (proc / "4242" / "task" / "4243" / "schedstat").write_text("5 7 1\n")
    [after] = collector.read()
    assert after.values["run_queue_wait_seconds_total"] == 45358429 + 277139619 + 286440229 + 7


def test_a_thread_that_cannot_be_read_for_a_while_is_not_counted_twice(proc: Path) -> None:
    collector = ProcessCollector(lambda: [4242], proc)
    [before] = collector.read()
    schedule = proc / "4242" / "task" / "4243" / "schedstat"
    schedule.rename(schedule.with_name("hidden"))
    [meanwhile] = collector.read()
    schedule.with_name("hidden").rename(schedule)
    [after] = collector.read()
    assert before.values == meanwhile.values == after.values


def test_a_thread_that_took_the_place_of_another_is_counted(proc: Path) -> None:
    collector = ProcessCollector(lambda: [4242], proc)
    [before] = collector.read()
    tasks = proc / "4242" / "task"
    (tasks / "4243").rename(tasks / "4250")
    (tasks / "4250" / "schedstat").write_text("5 7 1\n")
    [after] = collector.read()
    assert after.values["run_queue_wait_seconds_total"] == before.values["run_queue_wait_seconds_total"] + 7  # type: ignore[operator]


def test_a_process_is_not_taken_for_ended_when_no_file_can_be_opened(proc: Path) -> None:
    collector = ProcessCollector(lambda: [4242], proc)
    [before] = collector.read()
    with none_left(), pytest.raises(UnavailableError, match="Too many open files"):
        list(collector.read())
    [after] = collector.read()
    assert before.values == after.values


def test_a_pid_used_again_starts_from_nothing(proc: Path) -> None:
    collector = ProcessCollector(lambda: [4242], proc)
    list(collector.read())
    stat = proc / "4242" / "stat"
    stat.write_text(stat.read_text().replace(" 169354 ", " 999999 "))
    shutil.rmtree(proc / "4242" / "task" / "4243")
    [after] = collector.read()
    assert after.values["start_ticks"] == 999999
    assert after.values["run_queue_wait_seconds_total"] == 45358429 + 286440229


def test_a_process_without_memory_of_its_own_keeps_its_switches(proc: Path) -> None:
    status = proc / "4242" / "status"
    [before] = read(proc, 4242)
    status.write_text("".join(line for line in status.read_text().splitlines(True) if not line.startswith("Vm")))
    [after] = read(proc, 4242)
    assert after.values == {name: value for name, value in before.values.items() if name != "resident_bytes"}


def test_a_name_that_looks_like_a_line_of_status_is_not_one(proc: Path) -> None:
    status = proc / "4242" / "status"
    [before] = read(proc, 4242)
    first, _, rest = status.read_text().partition("\n")
    assert first.startswith("Name:")
    status.write_text(f"Name:\tVmRSS: 77 kB\n{rest}")
    assert read(proc, 4242) == [before]


@pytest.mark.parametrize("number", ["9" * 21, "9" * 5000, "-1", "1_0", "x"])
def test_what_is_no_number_of_64_bits_is_malformed(proc: Path, number: str) -> None:
    stat = proc / "4242" / "stat"
    stat.write_text(stat.read_text().replace(" 169354 ", f" {number} "))
    with pytest.raises(MalformedError, match="4242/stat: expected a whole number"):
        read(proc, 4242)


def test_a_process_that_has_ended_is_absent() -> None:
    assert [process.device for process in read(RECORDED, 1, 4242, 99)] == ["4242"]


def test_what_the_kernel_hides_is_missing_and_not_zero(proc: Path) -> None:
    (proc / "4242" / "io").unlink()
    shutil.rmtree(proc / "4242" / "task")
    [process] = read(proc, 4242)
    hidden = {"read_bytes_total", "run_queue_wait_seconds_total", "main_thread_run_seconds_total"}
    assert hidden.isdisjoint(process.values)
    assert process.values["threads"] == 3


@pytest.mark.parametrize(
    ("file", "text"),
    [("stat", "4242 (x) S 1"), ("stat", ""), ("status", "\0\0"), ("io", "rchar: -3\n"), ("task/4243/schedstat", "1 2")],
)
def test_a_garbled_file_is_malformed(proc: Path, file: str, text: str) -> None:
    (proc / "4242" / file).write_text(text)
    with pytest.raises(MalformedError, match=f"4242/{file}"):
        read(proc, 4242)


def test_the_work_of_a_living_process_is_seen() -> None:
    """The kernel brings the counter up to date at its ticks, at most 10 ms apart: 50 ms of work show as 40 or more."""
    collector = ProcessCollector(lambda: [os.getpid()])
    [before] = collector.read()
    begin = time.thread_time()
    while time.thread_time() - begin < 0.05:
        pass
    [after] = collector.read()
    column = "main_thread_run_seconds_total"
    assert float(str(PROCESS.convert(after)[column])) - float(str(PROCESS.convert(before)[column])) >= 0.04
