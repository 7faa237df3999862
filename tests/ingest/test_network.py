from pathlib import Path

import pytest

from crosswind.data.errors import MalformedError
from crosswind.ingest.collectors.network import NetworkCollector

RECORDED = Path(__file__).parent / "recorded" / "two_cores" / "proc"
HEADINGS = "Inter-|   Receive\n face |bytes packets\n"


def test_each_interface_is_a_device_and_tcp_is_one_too() -> None:
    assert [sample.device for sample in NetworkCollector(RECORDED).read()] == ["lo", "ifb0", "ifb1", "eth0", "tcp"]


def test_received_and_sent_are_told_apart() -> None:
    values = {sample.device: sample.values for sample in NetworkCollector(RECORDED).read()}["eth0"]
    assert (values["receive_bytes_total"], values["receive_packets_total"]) == (466641190, 19739)
    assert (values["transmit_bytes_total"], values["transmit_packets_total"]) == (530635, 6060)


def test_every_place_of_the_line_goes_to_its_column(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "dev").write_text(f"{HEADINGS}  ib0:{' '.join(str(place) for place in range(100, 116))}\n")
    first = next(iter(NetworkCollector(tmp_path).read()))
    assert first.device == "ib0"
    assert list(first.values.values()) == [100, 101, 102, 103, 108, 109, 110, 111]


def test_tcp_tells_of_segments_sent_again() -> None:
    *_, tcp = NetworkCollector(RECORDED).read()
    assert dict(tcp.values) == {
        "received_segments_total": 710509,
        "sent_segments_total": 696328,
        "retransmitted_segments_total": 483,
        "retransmit_timeouts_total": 2,
        "listen_drops_total": 0,
    }


@pytest.mark.parametrize("text", ["", "garbage\n", HEADINGS + "eth0: 1 2 3\n", HEADINGS + "eth0:" + " x" * 16 + "\n"])
def test_a_garbled_file_is_malformed(tmp_path: Path, text: str) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "dev").write_text(text)
    with pytest.raises(MalformedError, match="net/dev"):
        list(NetworkCollector(tmp_path).read())
