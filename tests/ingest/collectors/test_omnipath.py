from pathlib import Path

import pytest
from tests.ingest.trees import recorded_tree

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import Kind, OnFull
from crosswind.ingest.collectors.infiniband import InfinibandCollector
from crosswind.ingest.collectors.omnipath import OMNIPATH, OmnipathCollector

SYSFS = recorded_tree("fabric") / "sys"


def test_the_port_and_what_the_driver_counts_for_all_of_it_are_devices() -> None:
    assert [sample.device for sample in OmnipathCollector(SYSFS).read()] == ["hfi1_0", "hfi1_0/1", "hfi1_1/1"]


def test_words_of_port_and_driver_become_bytes() -> None:
    [port] = [sample for sample in OmnipathCollector(SYSFS).read() if sample.device == "hfi1_0/1"]
    assert port.values["receive_bytes_total"] == 345091702026
    converted = OMNIPATH.convert(port)
    assert converted["receive_bytes_total"] == 4 * 345091702026
    assert converted["driver_transmit_bytes_total"] == 4 * 273558326600
    assert converted["rate_bytes_per_second"] == 12.5e9


def test_names_with_a_comma_fill_their_columns() -> None:
    [port] = [sample.values for sample in OmnipathCollector(SYSFS).read() if sample.device == "hfi1_0/1"]
    assert (port["link_ups_total"], port["tx_flow_stalls_total"], port["transmit_driver_discards_total"]) == (1, 88, 3)
    assert (port["rc_resends_total"], port["dma_waits_total"]) == (2079, 50646)


def test_what_all_of_the_adapter_waits_for_is_in_the_device_s_row() -> None:
    [device] = [dict(sample.values) for sample in OmnipathCollector(SYSFS).read() if sample.device == "hfi1_0"]
    assert device.pop("registration") == (SYSFS / "class/infiniband/hfi1_0").stat().st_ino
    assert device == {
        "verbs_transmit_waits_total": 12,
        "pio_waits_total": 1021,
        "memory_waits_total": 0,
        "tid_waits_total": 0,
        "receive_limits_total": 55,
        "lifespan_seconds": 10,
    }


def test_a_kernel_that_shows_32_bits_alone_says_so() -> None:
    [old] = [sample.values for sample in OmnipathCollector(SYSFS).read() if sample.device == "hfi1_1/1"]
    assert (old["transmit_bytes_total"], old["data_range_bytes"]) == (2048, 2**32)


def test_no_counter_wraps() -> None:
    counters = [column for column in OMNIPATH.columns if column.kind is Kind.COUNTER]
    assert {column.on_full for column in counters} == {OnFull.SATURATE}


def test_an_adapter_is_known_by_its_driver_when_udev_has_named_it(tmp_path: Path) -> None:
    device = tmp_path / "class" / "infiniband" / "opap24s0"
    (device / "ports" / "1" / "counters").mkdir(parents=True)
    (device / "ports" / "1" / "counters" / "port_xmit_data").write_text("250\n")
    (device / "device").mkdir()
    (device / "device" / "driver").symlink_to("../../../../bus/pci/drivers/hfi1")
    [sample] = OmnipathCollector(tmp_path).read()
    assert (sample.device, OMNIPATH.convert(sample)["transmit_bytes_total"]) == ("opap24s0/1", 1000)
    assert not InfinibandCollector(tmp_path).available()


def test_a_node_with_nothing_but_infiniband_has_no_omni_path(tmp_path: Path) -> None:
    (tmp_path / "class" / "infiniband" / "mlx5_0" / "ports" / "1").mkdir(parents=True)
    assert not OmnipathCollector(tmp_path).available()
    with pytest.raises(UnavailableError, match="class/infiniband: no port of hfi1 shows anything"):
        list(OmnipathCollector(tmp_path).read())
