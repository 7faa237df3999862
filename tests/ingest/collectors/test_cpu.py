from pathlib import Path

import pytest
from tests.ingest.trees import recorded_tree

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.metric import OnFull
from crosswind.ingest.collectors.cpu import CPU, CpuCollector

RECORDED = recorded_tree("two_cores") / "proc"


def written(tmp_path: Path, text: str) -> CpuCollector:
    (tmp_path / "stat").write_text(text)
    return CpuCollector(tmp_path)


def test_there_is_a_row_for_the_node_and_one_for_each_core() -> None:
    assert [sample.device for sample in CpuCollector(RECORDED).read()] == ["all", "cpu0", "cpu1"]


def test_ticks_become_seconds() -> None:
    _, core, _ = CpuCollector(RECORDED).read()
    assert core.values["user_seconds_total"] == 48615
    assert CPU.convert(core)["user_seconds_total"] == pytest.approx(486.15)  # USER_HZ is 100 on every Linux in use
    assert core.values["steal_seconds_total"] == 19


def test_the_schedulers_counters_belong_to_the_node_alone() -> None:
    node, core, _ = CpuCollector(RECORDED).read()
    assert node.values["context_switches_total"] == 1577028
    assert node.values["forks_total"] == 8853
    assert node.values["interrupts_total"] == 774091
    assert (node.values["procs_running"], node.values["procs_blocked"]) == (8, 0)
    assert "context_switches_total" not in core.values


def test_the_load_is_next_to_the_sum_of_all_cores() -> None:
    node, core, _ = CpuCollector(RECORDED).read()
    assert (node.values["load1"], node.values["load5"], node.values["load15"]) == (1.1, 0.83, 0.6)
    assert "load1" not in core.values


@pytest.mark.parametrize("text", ["", "1.10 0.83\n", "nan inf 1e9 2/112 22590\n", "1.10 0.83 -0.60 2/112 22590\n"])
def test_a_garbled_load_is_missing(tmp_path: Path, text: str) -> None:
    (tmp_path / "loadavg").write_text(text)
    [node] = written(tmp_path, "cpu  1 2 3 4 5 6 7 8 0 0\n").read()
    assert "load1" not in node.values
    assert node.values["steal_seconds_total"] == 8


def test_a_core_that_was_taken_offline_is_absent(tmp_path: Path) -> None:
    collector = written(tmp_path, "cpu  1 2 3 4 5 6 7 8 0 0\ncpu7 1 2 3 4 5 6 7 8 0 0\n")
    assert [sample.device for sample in collector.read()] == ["all", "cpu7"]


def test_what_the_kernel_corrects_downwards_is_marked() -> None:
    corrected = [column.name for column in CPU.columns if column.on_full is OnFull.CLAMP]
    assert corrected == ["idle_seconds_total", "iowait_seconds_total"]


@pytest.mark.parametrize(
    "text",
    ["", "\n\n", "intr 5\n", "cpu  1 2 3\n", "cpu  1 2 3 4 5 6 7 -8\n", "cpu  1 2 3 4 5 6 7 8\ncpux 1 2 3 4 5 6 7 8\n"],
)
def test_a_garbled_file_is_malformed(tmp_path: Path, text: str) -> None:
    with pytest.raises(MalformedError, match="stat"):
        list(written(tmp_path, text).read())
