import shutil
from pathlib import Path

import pytest
from tests.ingest.trees import recorded_tree

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.collectors.protocol import ProtocolCollector

TREE = recorded_tree("two_cores")


def protocols(root: Path) -> dict[str, dict[str, object]]:
    return {sample.device: dict(sample.values) for sample in ProtocolCollector(root / "proc").read()}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(TREE, tmp_path / "root")
    return tmp_path / "root"


def test_each_protocol_is_a_device() -> None:
    assert set(protocols(TREE)) == {"ip", "tcp", "udp"}


def test_tcp_reports_segments_sent_again() -> None:
    assert {name: value for name, value in protocols(TREE)["tcp"].items() if value} == {
        "active_opens_total": 403,
        "passive_opens_total": 351,
        "failed_opens_total": 11,
        "reset_connections_total": 9,
        "established_connections": 12,
        "received_segments_total": 710509,
        "sent_segments_total": 696328,
        "retransmitted_segments_total": 483,
        "sent_resets_total": 83,
        "sack_recoveries_total": 12,
        "sack_reorders_total": 8,
        "timestamp_reorders_total": 1,
        "fast_retransmits_total": 14,
        "retransmit_timeouts_total": 2,
        "loss_probes_total": 481,
        "duplicates_reported_total": 480,
        "out_of_order_segments_total": 13,
        "windows_opened_total": 324,
        "windows_shut_total": 324,
        "original_segments_total": 588586,
        "delivered_segments_total": 589407,
    }


def test_marks_of_switches_and_lost_datagrams_have_columns(root: Path) -> None:
    netstat, snmp = root / "proc/net/netstat", root / "proc/net/snmp"
    netstat.write_text("TcpExt: TCPTimeouts ListenDrops\nTcpExt: 5 6\nIpExt: InECT0Pkts InCEPkts\nIpExt: 900 41\n")
    snmp.write_text("Udp: InDatagrams RcvbufErrors\nUdp: 113 7\nTcp: InSegs MaxConn\nTcp: 3 -1\n")
    counters = protocols(root)
    assert counters["ip"] == {"ip_ect0_packets_total": 900, "ip_congestion_marked_packets_total": 41}
    assert counters["udp"] == {"udp_received_datagrams_total": 113, "udp_receive_buffer_errors_total": 7}
    assert counters["tcp"] == {
        "received_segments_total": 3,
        "retransmit_timeouts_total": 5,
        "listen_drops_total": 6,
    }


def test_a_counter_that_an_error_made_negative_is_missing_and_hides_no_other(root: Path) -> None:
    snmp = root / "proc/net/snmp"
    snmp.write_text(f"Tcp: InSegs OutSegs\nTcp: 7 {2**64 - 1}\nUdp: InDatagrams\nUdp: {2**63 - 1}\n")
    values = protocols(root)
    assert "sent_segments_total" not in values["tcp"]
    assert values["tcp"]["received_segments_total"] == 7
    assert values["udp"]["udp_received_datagrams_total"] == 2**63 - 1


@pytest.mark.parametrize("text", ["", "Tcp: InSegs\n", "Tcp: InSegs OutSegs\nTcp: 1\n", "Tcp: InSegs\nTcp: -1\n"])
def test_a_garbled_protocol_is_malformed(root: Path, text: str) -> None:
    (root / "proc/net/snmp").write_text(text)
    with pytest.raises(MalformedError, match="net/snmp"):
        protocols(root)
