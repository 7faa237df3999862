from pathlib import Path

import pytest
from tests.ingest.trees import recorded_tree

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.collectors.softnet import SoftnetCollector

RECORDED = recorded_tree("two_cores") / "proc"


def written(tmp_path: Path, *lines: str) -> SoftnetCollector:
    (tmp_path / "net").mkdir()
    (tmp_path / "net/softnet_stat").write_text("".join(f"{line}\n" for line in lines))
    return SoftnetCollector(tmp_path)


def line(*numbers: int) -> str:
    return " ".join(f"{number:08x}" for number in numbers)


def test_hexadecimal_numbers_of_each_core() -> None:
    first, second = SoftnetCollector(RECORDED).read()
    assert (first.device, first.values["processed_packets_total"]) == ("cpu0", 0x130FB)
    assert (second.device, second.values["processed_packets_total"]) == ("cpu1", 0x18272)
    assert (second.values["dropped_packets_total"], second.values["squeezed_total"]) == (0, 2)


def test_every_place_goes_to_its_column_and_the_core_is_named_by_its_number(tmp_path: Path) -> None:
    [core] = written(tmp_path, line(100, 101, 102, 0, 0, 0, 0, 0, 0, 109, 110, 111, 7, 60, 51)).read()
    assert core.device == "cpu7"
    assert dict(core.values) == {
        "processed_packets_total": 100,
        "dropped_packets_total": 101,
        "squeezed_total": 102,
        "steered_wakeups_total": 109,
        "flow_limited_packets_total": 110,
        "backlog_packets": 111,
    }


def test_an_older_kernel_reports_neither_the_core_nor_its_backlog(tmp_path: Path) -> None:
    cores = list(written(tmp_path, line(*range(11)), line(*range(11))).read())
    assert [core.device for core in cores] == ["cpu0", "cpu1"]
    assert "backlog_packets" not in cores[0].values
    assert cores[0].values["flow_limited_packets_total"] == 10


def test_the_largest_number_of_32_bits_is_read(tmp_path: Path) -> None:
    [core] = written(tmp_path, line(2**32 - 1, *range(10))).read()
    assert core.values["processed_packets_total"] == 4294967295


@pytest.mark.parametrize(
    "text", ["00000001", line(*range(8)), line(*range(9)).replace(" ", "0"), line(*range(9)).replace("8", "g")]
)
def test_a_garbled_line_is_malformed(tmp_path: Path, text: str) -> None:
    with pytest.raises(MalformedError, match="softnet_stat"):
        list(written(tmp_path, text).read())
