import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.ingest.trees import recorded_tree

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import OnFull, Scalar
from crosswind.ingest.collectors.infiniband import INFINIBAND, InfinibandCollector
from crosswind.ingest.collectors.rdma_counters import COUNTERS, megabits, number, state, text

SYSFS = recorded_tree("fabric") / "sys"
LARGEST = 2**64 - 1


def shown(sysfs: Path) -> dict[str, Mapping[str, Scalar]]:
    return {sample.device: sample.values for sample in InfinibandCollector(sysfs).read()}


def port(sysfs: Path, **counters: object) -> Path:
    """A port with these counters, and the root of its tree."""
    folder = sysfs / "class" / "infiniband" / "mlx5_0" / "ports" / "1" / "counters"
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in counters.items():
        (folder / name).write_text(f"{value}\n")
    return sysfs


def test_every_port_is_a_device_and_those_of_omni_path_are_left_to_their_own_source() -> None:
    assert list(shown(SYSFS)) == [
        *("bnxt_re0/1", "hns_0/1", "i40iw0/1", "irdma0/1", "mlx4_0/1", "mlx5_0/1", "mlx5_1/1", "mlx5_2/1"),
        *("mthca0/1", "rdmap0s6/1"),
    ]


def test_a_port_shows_its_traffic_in_words_and_its_errors_where_they_stopped() -> None:
    values = dict(shown(SYSFS)["mlx5_0/1"])
    assert values.pop("registration") == (SYSFS / "class/infiniband/mlx5_0/ports/1").stat().st_ino
    nonzero = {name: value for name, value in values.items() if value != 0}
    assert nonzero == {
        "state_id": 4,
        "physical_state_id": 5,
        "rate_bytes_per_second": 400_000,
        "link_layer": "InfiniBand",
        "transmit_bytes_total": 205143497464492,
        "receive_bytes_total": 205128687774249,
        "transmit_packets_total": 242071897216,
        "receive_packets_total": 240037171331,
        "unicast_transmit_packets_total": 242071897216,
        "unicast_receive_packets_total": 240037171331,
        "transmit_wait_total": 4294967295,
        "transmit_discards_total": 65535,
        "receive_switch_relay_errors_total": 2,
        "link_downed_total": 255,
        "excessive_buffer_overrun_errors_total": 15,
        "lifespan_seconds": 10,
        "out_of_sequence_total": 12,
        "packet_seq_err_total": 41,
        "local_ack_timeout_err_total": 7,
        "duplicate_request_total": 3,
        "rx_write_requests_total": 3912442817,
        "rx_read_requests_total": 128844,
    }


def test_what_is_full_is_at_the_end_of_its_column() -> None:
    values = shown(SYSFS)["mlx5_0/1"]
    for name in ("transmit_wait", "transmit_discards", "link_downed", "excessive_buffer_overrun_errors"):
        column = INFINIBAND[f"{name}_total"]
        assert (column.on_full, 2**column.width_bits - 1) == (OnFull.SATURATE, values[column.name])


def test_words_become_bytes() -> None:
    [sample] = [sample for sample in InfinibandCollector(SYSFS).read() if sample.device == "mlx5_2/1"]
    converted = INFINIBAND.convert(sample)
    assert converted["receive_bytes_total"] == 4 * 1879048192000
    assert converted["receive_packets_total"] == 7516192768
    assert converted["rate_bytes_per_second"] == 12.5e9
    assert converted["lifespan_seconds"] == 0.01


@given(st.integers(0, LARGEST), st.integers(0, LARGEST))
@example(LARGEST, LARGEST)
def test_data_alone_is_counted_in_words_whatever_its_size(
    tmp_path_factory: pytest.TempPathFactory, words: int, packets: int
) -> None:
    tree = port(tmp_path_factory.mktemp("sys"), port_xmit_data=words, port_xmit_packets=packets)
    [sample] = InfinibandCollector(tree).read()
    assert (sample.values["transmit_bytes_total"], sample.values["transmit_packets_total"]) == (words, packets)
    assert INFINIBAND.convert(sample)["transmit_bytes_total"] == 4 * words
    assert INFINIBAND.convert(sample)["transmit_packets_total"] == packets


def test_four_is_the_factor_of_the_port_s_own_data_counters_and_of_no_other() -> None:
    assert [column.name for column in INFINIBAND.columns if column.scale == 4] == [
        *("transmit_bytes_total", "receive_bytes_total", "data_range_bytes"),
    ]


def test_roce_reports_congestion() -> None:
    values = shown(SYSFS)["mlx5_2/1"]
    assert values["link_layer"] == "Ethernet"
    assert [values[f"{name}_total"] for name in ("np_ecn_marked_roce_packets", "np_cnp_sent")] == [91744, 88210]
    assert [values[f"rp_cnp_{name}_total"] for name in ("handled", "ignored")] == [77120, 4]


def test_drivers_name_congestion_in_their_own_ways_and_fill_the_same_columns() -> None:
    ports = shown(SYSFS)
    assert ports["irdma0/1"]["np_cnp_sent_total"] == 402
    assert ports["irdma0/1"]["np_ecn_marked_roce_packets_total"] == 421
    assert ports["bnxt_re0/1"]["np_cnp_sent_total"] == 1507
    assert ports["bnxt_re0/1"]["cnp_received_total"] == 1200
    assert ports["hns_0/1"]["np_cnp_sent_total"] == 21


def test_a_driver_without_port_counters_shows_its_own() -> None:
    values = shown(SYSFS)["irdma0/1"]
    assert "transmit_bytes_total" not in values
    assert (values["ip4_transmit_bytes_total"], values["retransmitted_segments_total"]) == (377282695168, 17)


def test_counters_that_there_is_nobody_to_ask_for_are_missing() -> None:
    values = dict(shown(SYSFS)["i40iw0/1"])
    del values["registration"]
    assert values == {
        "state_id": 4,
        "physical_state_id": 5,
        "rate_bytes_per_second": 40_000,
        "link_layer": "Ethernet",
    }


def test_elastic_fabric_adapters_count_octets() -> None:
    values = shown(SYSFS)["rdmap0s6/1"]
    assert values["rdma_write_bytes_total"] == 1099511627776
    assert (values["driver_transmit_bytes_total"], values["retrans_pkts_total"]) == (1107295240192, 108)
    assert INFINIBAND["rdma_write_bytes_total"].scale == 1


def test_a_port_without_extended_counters_says_where_they_end() -> None:
    values = shown(SYSFS)["mthca0/1"]
    assert values["receive_bytes_total"] == 2**32 - 1
    assert (values["data_range_bytes"], values["packets_range"]) == (2**32, 2**32)
    assert "data_range_bytes" not in shown(SYSFS)["mlx5_0/1"]
    assert INFINIBAND["receive_bytes_total"].range_from == "data_range_bytes"
    assert INFINIBAND["receive_bytes_total"].on_full is OnFull.SATURATE


def test_a_port_that_counted_beyond_32_bits_is_not_said_to_end_there(tmp_path: Path) -> None:
    tree = port(tmp_path, port_xmit_data=2**32, port_rcv_data=5)
    assert shown(tree)["mlx5_0/1"].keys() == {"transmit_bytes_total", "receive_bytes_total", "registration"}


def test_the_64_bit_counters_of_older_drivers_are_taken_instead_of_those_that_are_full() -> None:
    values = shown(SYSFS)["mlx4_0/1"]
    assert values["receive_bytes_total"] == 90000000001
    assert values["transmit_packets_total"] == 5000000002
    assert values["multicast_receive_packets_total"] == 812
    assert "data_range_bytes" not in values


def test_counters_of_a_whole_device_are_a_row_of_their_own(tmp_path: Path) -> None:
    tree = port(tmp_path, symbol_error=1)
    folder = tree / "class" / "infiniband" / "mlx5_0" / "hw_counters"
    folder.mkdir()
    (folder / "out_of_buffer").write_text("12\n")
    ports = shown(tree)
    assert list(ports) == ["mlx5_0", "mlx5_0/1"]
    assert ports["mlx5_0"]["out_of_buffer_total"] == 12


def test_mlx5_queue_counters_wrap_at_32_bits_and_congestion_counters_do_not() -> None:
    assert (INFINIBAND["out_of_sequence_total"].width_bits, INFINIBAND["out_of_sequence_total"].on_full) == (32, "wrap")
    assert INFINIBAND["np_cnp_sent_total"].width_bits == 64


@pytest.mark.parametrize(
    ("name", "width"),
    [("symbol_error", 16), ("link_downed", 8), ("port_xmit_constraint_errors", 8), ("local_link_integrity_errors", 4)],
)
def test_error_counters_are_as_narrow_as_the_specification_has_them(name: str, width: int) -> None:
    assert (COUNTERS[name].width_bits, COUNTERS[name].on_full) == (width, OnFull.SATURATE)


def test_another_registration_is_another_epoch(tmp_path: Path) -> None:
    tree = port(tmp_path, port_xmit_data=100)
    folder = tree / "class" / "infiniband" / "mlx5_0" / "ports"
    collector = InfinibandCollector(tree)
    [before] = collector.read()
    (folder / "1").rename(folder / "old")
    port(tmp_path, port_xmit_data=1)
    after = {sample.device: sample.values for sample in collector.read()}["mlx5_0/1"]
    assert after["transmit_bytes_total"] == 1
    assert after["registration"] != before.values["registration"]


def test_an_adapter_that_is_pulled_out_takes_its_rows_with_it(tmp_path: Path) -> None:
    shutil.copytree(SYSFS, tmp_path / "sys")
    collector = InfinibandCollector(tmp_path / "sys")
    before = [sample.device for sample in collector.read()]
    shutil.rmtree(tmp_path / "sys/class/infiniband/mlx5_2")
    assert [sample.device for sample in collector.read()] == [name for name in before if name != "mlx5_2/1"]


def test_a_node_with_nothing_but_omni_path_has_no_infiniband(tmp_path: Path) -> None:
    (tmp_path / "class" / "infiniband" / "hfi1_0" / "ports" / "1").mkdir(parents=True)
    assert not InfinibandCollector(tmp_path).available()
    with pytest.raises(UnavailableError, match="class/infiniband: no port shows anything"):
        list(InfinibandCollector(tmp_path).read())


@given(st.integers(0, LARGEST))
def test_a_number_is_read_as_it_was_written(value: int) -> None:
    assert number(f"{value}\n".encode()) == value


@given(st.binary(max_size=40).filter(lambda content: not content.strip().isdigit()))
@example(b"N/A (no PMA)\n")
@example(b"-1\n")
@example(b"1_000\n")
@example(b"0x10\n")
@example(b"")
def test_what_is_not_a_number_is_none(content: bytes) -> None:
    assert number(content) is None


@given(st.integers(2**64, 10**30))
def test_a_number_beyond_64_bits_is_none(value: int) -> None:
    assert number(str(value).encode()) is None


@given(st.integers(0, 10**6 - 1), st.booleans(), st.sampled_from(["4X NDR", "1X SDR", "12X QDR"]))
def test_a_rate_is_a_whole_number_of_megabits(gigabits: int, half: bool, lanes: str) -> None:
    rate = f"{gigabits}{'.5' if half else ''} Gb/sec ({lanes})\n".encode()
    assert megabits(rate) == gigabits * 1000 + 500 * half


@pytest.mark.parametrize("content", [b"", b"100\n", b"fast Gb/sec (4X)\n", b"1.55 Gb/sec (4X)\n", b"-1 Gb/sec (4X)\n"])
def test_what_is_not_a_rate_is_none(content: bytes) -> None:
    assert megabits(content) is None


@pytest.mark.parametrize(
    ("content", "expected"), [(b"4: ACTIVE\n", 4), (b"ACTIVE\n", None), (b"4\n", None), (b"4444: X\n", None)]
)
def test_a_state_is_the_number_in_front(content: bytes, expected: int | None) -> None:
    assert state(content) == expected


@pytest.mark.parametrize(
    ("content", "expected"), [(b"Ethernet\n", "Ethernet"), (b"a\nb\n", None), (b"x" * 201, None), (b"\xff\n", None)]
)
def test_a_text_is_one_short_line(content: bytes, expected: str | None) -> None:
    assert text(content) == expected
