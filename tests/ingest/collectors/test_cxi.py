import shutil
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.ingest.trees import recorded_tree

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import Kind, OnFull
from crosswind.ingest.collectors.cxi import CXI, HANDLED, TELEMETRY, CxiCollector, stamped

RECORDED = recorded_tree("fabric")


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A copy of the recorded node, to be changed."""
    shutil.copytree(RECORDED, tmp_path / "node")
    return tmp_path / "node"


def collector(root: Path) -> CxiCollector:
    return CxiCollector(root / "sys", root / "run")


def adapter(root: Path) -> Path:
    return root / "sys" / "class" / "cxi" / "cxi0" / "device"


def test_values_are_taken_from_in_front_of_their_stamps() -> None:
    [sample] = collector(RECORDED).read()
    assert sample.device == "cxi0"
    assert sample.values["transmit_bytes_total"] == 103060429480
    assert sample.values["receive_bytes_total"] == 99120334012
    assert sample.values["hni_tx_paused_tc0_cycles_total"] == 55012
    assert sample.values["pct_spt_timeouts_total"] == 11
    assert sample.values["link_up"] == 1


def test_a_row_says_when_the_kernel_took_its_last_counter() -> None:
    [sample] = collector(RECORDED).read()
    stamps = [file.read_text().strip().partition("@")[2] for file in (adapter(RECORDED) / "telemetry").iterdir()]
    assert str(sample.values["measured_ns"]) == max(stamps).replace(".", "")


def test_what_nobody_requested_is_not_read() -> None:
    assert (adapter(RECORDED) / "telemetry" / "hni_rx_ok_27").exists()
    [sample] = collector(RECORDED).read()
    assert sample.values.keys() == {column.name for column in CXI.columns}


def test_sixty_counters_are_enough_for_every_sweep() -> None:
    assert len(TELEMETRY) <= 60
    assert {column.width_bits for column in TELEMETRY.values()} == {56}
    assert {column.on_full for column in TELEMETRY.values()} == {OnFull.WRAP}


def test_the_retry_handler_s_counters_end_with_its_daemon() -> None:
    [sample] = collector(RECORDED).read()
    assert [sample.values[HANDLED[file].name] for file in sorted(HANDLED)] == list(range(len(HANDLED)))
    counters = [column for column in HANDLED.values() if column.kind is Kind.COUNTER]
    assert {(column.width_bits, column.on_full) for column in counters} == {(31, OnFull.RESET)}


def test_a_node_without_retry_handler_leaves_its_columns_out(node: Path) -> None:
    shutil.rmtree(node / "run")
    [sample] = collector(node).read()
    assert sample.values.keys() == {column.name for column in CXI.columns} - {c.name for c in HANDLED.values()}


def test_a_counter_that_this_adapter_does_not_have_is_left_out(node: Path) -> None:
    (adapter(node) / "telemetry" / "hni_pcs_good_cw").unlink()
    [sample] = collector(node).read()
    assert "hni_pcs_good_codewords_total" not in sample.values
    assert sample.values["hni_pcs_corrected_codewords_total"] == 18202


def test_link_restarts_are_counted_by_their_stamps(node: Path) -> None:
    source = collector(node)

    def restarts() -> object:
        [sample] = source.read()
        return sample.values["link_restarts_total"]

    assert [restarts(), restarts()] == [3, 3]
    for number in (3, 4):  # both within one second
        (adapter(node) / "link_restarts" / f"time_{number}").write_text("1743570000\n")
    assert restarts() == 5
    for number in range(10):  # all the way round
        (adapter(node) / "link_restarts" / f"time_{number}").write_text(f"{1743580000 + number}\n")
    assert [restarts(), restarts()] == [15, 15]
    for number in range(10):  # somebody took the link up, which empties the ring
        (adapter(node) / "link_restarts" / f"time_{number}").write_text("0\n")
    assert restarts() == 15


def test_a_virtual_function_has_no_ring_of_restarts(node: Path) -> None:
    shutil.rmtree(adapter(node) / "link_restarts")
    shutil.rmtree(adapter(node) / "properties")
    [sample] = collector(node).read()
    assert sample.values.keys().isdisjoint({"link_restarts_total", "link_up"})


def test_a_reload_of_the_driver_is_another_epoch(node: Path) -> None:
    source = collector(node)
    [before] = source.read()
    (adapter(node) / "telemetry").rename(adapter(node) / "old")
    shutil.copytree(adapter(node) / "old", adapter(node) / "telemetry")
    [after] = source.read()
    assert before.values["registration"] != after.values["registration"]
    assert before.values["transmit_bytes_total"] == after.values["transmit_bytes_total"]


def test_an_adapter_that_vanishes_is_gone(node: Path) -> None:
    shutil.copytree(node / "sys" / "class" / "cxi" / "cxi0", node / "sys" / "class" / "cxi" / "cxi1")
    source = collector(node)
    assert [sample.device for sample in source.read()] == ["cxi0", "cxi1"]
    shutil.rmtree(adapter(node))
    assert [sample.device for sample in source.read()] == ["cxi1"]


def test_the_same_tree_is_found_under_debugfs(node: Path) -> None:
    (node / "sys" / "kernel" / "debug").mkdir(parents=True)
    (node / "sys" / "class" / "cxi").rename(node / "sys" / "kernel" / "debug" / "cxi")
    assert collector(node).available()
    assert [sample.device for sample in collector(node).read()] == ["cxi0"]


def test_without_an_adapter_the_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="class/cxi: No such file or directory"):
        list(collector(tmp_path).read())
    (tmp_path / "sys" / "class" / "cxi").mkdir(parents=True)
    with pytest.raises(UnavailableError, match="class/cxi: no adapter shows anything"):
        list(collector(tmp_path).read())


@given(st.integers(0, 2**56 - 1), st.integers(0, 4_000_000_000), st.integers(0, 999_999_999))
def test_value_and_stamp_are_read_as_the_kernel_prints_them(value: int, seconds: int, nanoseconds: int) -> None:
    printed = f"{value}@{seconds}.{nanoseconds:09d}\n".encode()
    assert stamped(printed) == (value, seconds * 10**9 + nanoseconds)


@pytest.mark.parametrize(
    "content",
    [b"", b"12\n", b"12@\n", b"12@1.5\n", b"@1.000000000\n", b"-1@1.000000000\n", b"1@1.000000000x\n", b"9" * 5000],
)
def test_what_has_another_form_is_none(content: bytes) -> None:
    assert stamped(content) is None


@given(st.integers(2**56, 10**25))
@example(2**56)
def test_a_value_wider_than_the_register_is_none(value: int) -> None:
    assert stamped(f"{value}@1743569213.088677609\n".encode()) is None
