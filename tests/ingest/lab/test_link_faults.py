import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.ingest.lab.conftest import on_the_first_core
from tests.ingest.lab.observed import at_work, running_companions
from tests.ingest.lab.traffic import arrived, in_a_lab, megabits, output_of, round_trip_ms

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.lab.conditions import Conditions
from crosswind.ingest.lab.hosts.hosts import Host, hosts
from crosswind.ingest.lab.injectors import INJECTORS, Target


@pytest.fixture(scope="module")
def rank(net: tuple[Host, ...]) -> Iterator[int]:
    """A process at rest: no link needs a busy one."""
    with on_the_first_core(net[0], "import time\ntime.sleep(1000)") as process:
        yield process


@in_a_lab
def test_a_rate_cap_is_what_gets_through_in_both_directions(target: Target) -> None:
    host, other = target.host, target.neighbours[0]
    with at_work("rate_cap", target, 40):
        assert megabits(host, other) == pytest.approx(40, rel=0.15)  # headers take 1 %, a busy machine more
        assert megabits(other, host) == pytest.approx(40, rel=0.15)
    assert megabits(host, other) > 80


@in_a_lab
def test_after_a_rate_cap_the_link_is_as_fast_as_it_was_made() -> None:
    with hosts(2, megabits=100) as (host, other):
        target = Target(host, (), 0, Path("/"), Conditions.__new__(Conditions))
        with at_work("rate_cap", target, 20):
            assert megabits(host, other) == pytest.approx(20, rel=0.15)
        assert megabits(host, other) == pytest.approx(100, rel=0.15)


@in_a_lab
def test_of_lost_packets_about_the_requested_share_is_missing_both_ways(target: Target) -> None:
    host, other = target.host, target.neighbours[0]
    with at_work("packet_loss", target, 20):
        # 4000 draws at 20 %: a standard deviation of 25 packets, of which five are allowed.
        assert 800 - 125 < 4000 - arrived(host, other, 4000) < 800 + 125
        assert 800 - 125 < 4000 - arrived(other, host, 4000) < 800 + 125
    assert arrived(host, other, 4000) > 3900


@in_a_lab
def test_the_kernel_sends_again_what_was_lost(target: Target) -> None:
    before = retransmitted(target.host)
    with at_work("packet_loss", target, 2):
        megabits(target.host, target.neighbours[0])
    assert retransmitted(target.host) > before


def retransmitted(host: Host) -> int:
    names, values = [line.split() for line in output_of(host, SNMP).splitlines() if line.startswith("Tcp:")]
    return int(values[names.index("RetransSegs")])


SNMP = "print(open('/proc/net/snmp').read())"


@in_a_lab
def test_latency_is_added_each_way_and_gone_afterwards(target: Target) -> None:
    wired, other = target.neighbours[1], target.host
    with at_work("latency", replace(target, host=wired), 20):
        assert 40 <= round_trip_ms(other, wired) < 48  # the wire's process has to be scheduled four times
        assert 40 <= round_trip_ms(wired, other) < 48
    assert round_trip_ms(other, wired) < 20


@in_a_lab
def test_a_latency_of_nothing_lets_everything_through(target: Target) -> None:
    wired = target.neighbours[1]
    with at_work("latency", replace(target, host=wired), 0):
        assert round_trip_ms(target.host, wired) < 20


@in_a_lab
def test_a_host_without_a_wire_cannot_be_late(target: Target) -> None:
    with pytest.raises(UnavailableError, match="host 0: has no wire, make it by hosts"):
        INJECTORS["latency"]().start(target, 1)


@in_a_lab
def test_neighbours_move_bytes_both_ways_through_the_ranks_port(target: Target) -> None:
    with at_work("neighbour_traffic", target, 2):
        before = port_bytes(target.host)
        time.sleep(0.3)
        moved = [now - then for now, then in zip(port_bytes(target.host), before, strict=True)]
        assert all(count > 1_000_000 for count in moved)  # 30 Mbit/s; a veth takes some thousand
        users = {Path("/proc", str(pid)).stat().st_uid for pid in running_companions()}
    assert users == {0, 65534}  # the wire's own and the neighbours'
    before = port_bytes(target.host)
    time.sleep(0.1)
    assert sum(port_bytes(target.host)) - sum(before) < 1_000_000


def port_bytes(host: Host) -> list[int]:
    line = next(line for line in output_of(host, DEVICES).splitlines() if host.device in line).split()
    return [int(line[1]), int(line[9])]


DEVICES = "print(open('/proc/net/dev').read().replace(':', ': '))"


@in_a_lab
def test_two_ranks_of_one_host_have_neighbours_of_their_own(target: Target) -> None:
    with at_work("neighbour_traffic", target, 1), at_work("neighbour_traffic", replace(target, rank=0), 1):
        assert len(running_companions()) == 1 + 2 * 2  # the wire, and both ends of two streams


@in_a_lab
def test_a_rank_without_neighbours_has_no_traffic_of_theirs(target: Target) -> None:
    with pytest.raises(UnavailableError, match="rank 1: has no neighbours"):
        INJECTORS["neighbour_traffic"]().start(replace(target, neighbours=()), 1)


@in_a_lab
def test_a_wire_that_has_ended_says_so() -> None:
    with hosts(2, wired=[0, 1]) as (first, second):
        assert first.wire is not None
        assert second.wire is not None
        first.wire.companion.process.kill()
        second.wire.cut()
        for wire in (first.wire, second.wire):
            with pytest.raises(UnavailableError, match="wire: "):
                wire.delay(1)
