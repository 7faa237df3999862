import itertools
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar
from urllib.request import ProxyHandler, Request, build_opener

import pytest
from tests.conftest import free_port
from tests.ingest.trees import recorded_tree

from crosswind.data.schema.errors import ConflictError, InvalidInputError, UnavailableError
from crosswind.data.schema.metric import NODE_KEYS, Collector, Column, MetricSet, Sample, Scalar
from crosswind.ingest.agent.agent import Reload, run_agent, sweep_once
from crosswind.ingest.agent.loop import Agent
from crosswind.ingest.agent.settings import AgentSettings
from crosswind.ingest.agent.survey import survey
from crosswind.ingest.agent.sweep import Sweep, timed
from crosswind.ingest.collectors import SOURCES, plugged_in_sources
from crosswind.ingest.collectors.source import Host, Source
from crosswind.ingest.occupancy.occupancy import Occupancy
from crosswind.ingest.spool.registration import announce
from crosswind.ingest.spool.segment import encode_frame
from crosswind.ingest.spool.spool import RecordFrame, RowsFrame, SpoolWriter, read_frames, read_segment, sealed_segments

RECORDED = recorded_tree("two_cores")
OURS = {source.name for source in SOURCES}
Row = dict[str, Scalar]


def rows(directory: Path, name: str) -> list[Row]:
    frames = (frame for path in sealed_segments(directory) for frame in read_frames(path))
    return [
        dict(zip(frame.columns, values, strict=True))
        for frame in frames
        if isinstance(frame, RowsFrame) and frame.metric_set.name == name
        for values in zip(*frame.columns.values(), strict=True)
    ]


def outcome(directory: Path, device: str) -> Row:
    [row] = [row for row in rows(directory, "collector") if row["device"] == device]
    return row


@dataclass(frozen=True)
class Clockwork:
    """A source under the test's control: it answers, or it raises."""

    answers: Sequence[Sample | Exception] = (Sample("a", {"turns": 1}),)
    seconds: float = 0.0
    metric_set: ClassVar[MetricSet] = MetricSet("clockwork", "turns", (Column("turns", "count"), Column("oil", "left")))
    readings: list[float] = field(default_factory=list)

    def available(self) -> bool:
        return True

    def read(self) -> Iterator[Sample]:
        self.readings.append(time.time())
        time.sleep(self.seconds)
        for answer in self.answers:
            if isinstance(answer, Exception):
                raise answer
            yield answer


@dataclass(frozen=True)
class Quick(Clockwork):
    """Another one, that never fails."""

    metric_set: ClassVar[MetricSet] = MetricSet("quick", "turns", (Column("turns", "count"),))


@dataclass(frozen=True)
class Shy(Clockwork):
    """Gives its answers one by one, and then the last for ever."""

    def read(self) -> Iterator[Sample]:
        self.readings.append(time.time())
        answer = self.answers[min(len(self.readings), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        yield answer


def swept(directory: Path, *collectors: Collector) -> None:
    with SpoolWriter(directory, "n1") as spool:
        sweep = Sweep(map(timed, collectors), spool, node="n1", boot_id="b1")
        Agent(sweep, spool, interval_seconds=1.0).sweep()


def test_the_loop_adds_time_node_device_and_boot(tmp_path: Path) -> None:
    begin = time.time_ns()
    swept(tmp_path, Clockwork())
    [row] = rows(tmp_path, "clockwork")
    assert begin <= int(str(row.pop("ts_ns"))) <= time.time_ns()
    assert int(str(row.pop("mono_ns"))) <= time.monotonic_ns()
    assert row == {"node": "n1", "device": "a", "boot_id": "b1", "turns": 1, "oil": None}


def test_the_set_in_the_spool_has_the_keys_in_front(tmp_path: Path) -> None:
    swept(tmp_path, Clockwork())
    [path] = sealed_segments(tmp_path)
    sets = {frame.metric_set.name: frame.metric_set for frame in read_frames(path) if isinstance(frame, RowsFrame)}
    assert sets["clockwork"].columns == NODE_KEYS + Clockwork.metric_set.columns


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([Sample("a", {"turns": 1}), UnavailableError("the spring is gone")], "UnavailableError: the spring is gone"),
        ([ZeroDivisionError("division")], "ZeroDivisionError: division"),
        ([RecursionError("deep\nand long" * 200)], "RecursionError: deep and long"),
        ([Sample("a", {"turns": "many"})], "expected int64"),
        ([Sample("a", {"turns": math.nan})], "expected int64"),
        ([Sample("a", {"turns": 2**63})], "9223372036854775808"),
        ([Sample("a", {"rust": 1})], "rust"),
    ],
)
def test_a_source_that_fails_is_down_with_its_reason_and_leaves_no_row(
    tmp_path: Path, answers: Sequence[Sample | Exception], reason: str
) -> None:
    swept(tmp_path, Clockwork(answers))
    row = outcome(tmp_path, "clockwork")
    assert row["up"] == 0
    assert reason in str(row["reason"])
    assert len(str(row["reason"])) <= 500
    assert rows(tmp_path, "clockwork") == []


def test_one_broken_source_does_not_stop_the_others(tmp_path: Path) -> None:
    shutil.copytree(RECORDED / "proc", tmp_path / "proc")
    (tmp_path / "proc" / "stat").write_bytes(os.urandom(4000))
    (tmp_path / "proc" / "meminfo").write_text("")
    shutil.rmtree(tmp_path / "proc" / "pressure")
    sweep_once(AgentSettings(tmp_path / "spool", node="n1", root=tmp_path))
    up = {str(row["device"]): row["up"] for row in rows(tmp_path / "spool", "collector")}
    assert {name: up[name] for name in ("cpu", "memory", "pressure", "network", "process")} == {
        "cpu": 0,
        "memory": 0,
        "pressure": 0,
        "network": 1,
        "process": 1,
    }
    assert "meminfo" in str(outcome(tmp_path / "spool", "memory")["reason"])
    assert [rows(tmp_path / "spool", name) for name in ("cpu", "memory", "pressure")] == [[], [], []]
    assert len(rows(tmp_path / "spool", "network")) == 4


def test_a_sweep_of_the_recorded_node_holds_what_it_showed(tmp_path: Path) -> None:
    sweep_once(AgentSettings(tmp_path, node="n1", root=RECORDED))
    by_device = {row["device"]: row for row in rows(tmp_path, "cpu")}
    assert by_device["cpu1"]["user_seconds_total"] == 50862
    assert by_device["cpu1"]["forks_total"] is None
    assert by_device["all"]["boot_id"] == "3a1f9a5e-6a0c-4a2b-9a53-0f5a3c1d2e4b"


@pytest.mark.host
def test_the_ranks_that_announced_themselves_are_watched(tmp_path: Path) -> None:
    rank = announce(tmp_path / "run", run_id="r1", rank=0, node="n1")
    sweep_once(AgentSettings(tmp_path / "spool", run_directory=tmp_path / "run"))
    [row] = rows(tmp_path / "spool", "process")
    assert (row["device"], row["start_ticks"]) == (str(rank.pid), rank.start_ticks)


def test_ticks_are_multiples_of_the_interval_and_the_stop_adds_a_last_sweep(tmp_path: Path) -> None:
    clockwork, stop = Clockwork(), threading.Event()
    with SpoolWriter(tmp_path, "n1") as spool:
        agent = Agent(Sweep([timed(clockwork)], spool, node="n1", boot_id=None), spool, interval_seconds=0.05)
        threading.Timer(0.42, stop.set).start()
        agent.run(stop)
    *aligned, _ = clockwork.readings
    *latenesses, last = [row["lateness_seconds"] for row in rows(tmp_path, "agent")]
    assert last is None
    due = [instant - float(str(lateness)) for instant, lateness in zip(aligned, latenesses, strict=True)]
    # The reading begins a little after its lateness was taken; a median forgives the moments in which others ran.
    assert statistics.median(instant % 0.05 for instant in due) < 0.01
    ticks = [math.floor(instant / 0.05) for instant in due]
    gaps = [later - earlier for earlier, later in itertools.pairwise(ticks)]
    assert all(gap >= 1 for gap in gaps)
    assert sum(gap - 1 for gap in gaps) <= agent.tally.missed_ticks_total


def test_a_tick_that_falls_into_a_sweep_is_counted_and_not_caught_up(tmp_path: Path) -> None:
    """Each read takes 0.12 s, hence at least two ticks of 0.05 s, and at most one sweep in three ticks is possible."""
    clockwork, stop = Clockwork(seconds=0.12), threading.Event()
    with SpoolWriter(tmp_path, "n1") as spool:
        agent = Agent(Sweep([timed(clockwork)], spool, node="n1", boot_id=None), spool, interval_seconds=0.05)
        threading.Timer(0.4, stop.set).start()
        agent.run(stop)
    assert agent.tally.missed_ticks_total >= 2 * (len(clockwork.readings) - 2)
    *_, last = rows(tmp_path, "agent")
    assert last["missed_ticks_total"] == agent.tally.missed_ticks_total


def test_a_sweep_that_the_disk_refuses_is_counted_and_the_next_one_is_kept(tmp_path: Path) -> None:
    blocked = tmp_path / "spool"
    with SpoolWriter(blocked, "n1") as spool:
        agent = Agent(Sweep([timed(Clockwork())], spool, node="n1", boot_id=None), spool, interval_seconds=1.0)
        blocked.rmdir()
        blocked.write_text("in the way")
        agent.sweep()
        blocked.unlink()
        agent.sweep()
    assert agent.tally.lost_sweeps_total == 1
    [own] = rows(blocked, "agent")
    assert own["lost_sweeps_total"] == 1


@pytest.mark.parametrize("seconds", [0.0, -1.0, 0.001, 1e9, math.nan, math.inf])
def test_an_interval_that_makes_no_sense_is_refused(tmp_path: Path, seconds: float) -> None:
    with pytest.raises(InvalidInputError, match="interval"):
        AgentSettings(tmp_path, interval_seconds=seconds)


def test_a_second_agent_in_one_spool_is_refused(tmp_path: Path) -> None:
    stop = threading.Event()
    thread = threading.Thread(target=run_agent, args=(AgentSettings(tmp_path, root=RECORDED), stop))
    thread.start()
    try:
        until = time.monotonic() + 10
        while not (tmp_path / "agent.lock").exists() or not (tmp_path / "agent.lock").read_text():
            assert time.monotonic() < until
            time.sleep(0.01)
        with pytest.raises(ConflictError, match=f"pid {os.getpid()}"):
            sweep_once(AgentSettings(tmp_path, root=RECORDED))
    finally:
        stop.set()
        thread.join()
    sweep_once(AgentSettings(tmp_path, root=RECORDED))


def test_a_spool_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnavailableError, match="file"):
        sweep_once(AgentSettings(tmp_path / "file" / "spool"))


AGENT = """
import sys; from pathlib import Path
from crosswind.ingest.agent.agent import run_agent, stop_on_signals
from crosswind.ingest.agent.settings import AgentSettings
run_agent(AgentSettings(Path(sys.argv[1]), interval_seconds=0.05, node="n1"), stop_on_signals())
"""


def open_files(directory: Path) -> set[Path]:
    return {path for path in directory.glob("*.open") if path.stat().st_size}


def started(directory: Path) -> "subprocess.Popen[bytes]":
    before = open_files(directory)
    agent = subprocess.Popen([sys.executable, "-c", AGENT, str(directory)])
    until = time.monotonic() + 20
    while not open_files(directory) - before:
        assert time.monotonic() < until
        time.sleep(0.01)
    return agent


def test_a_real_agent_samples_is_killed_starts_again_and_ends_on_request(tmp_path: Path) -> None:
    with started(tmp_path) as first:
        time.sleep(0.6)
        first.kill()
    [abandoned] = open_files(tmp_path)
    size = abandoned.stat().st_size
    with started(tmp_path) as second:
        time.sleep(0.3)
        second.send_signal(signal.SIGTERM)
        assert second.wait(10) == 0
    assert list(tmp_path.glob("*.open")) == []
    recovered, _ = sealed_segments(tmp_path)
    loops = rows(tmp_path, "agent")
    sweeps = {row["ts_ns"] for row in rows(tmp_path, "memory")}
    assert len(loops) in (len(sweeps), len(sweeps) - 1)  # the kill may have fallen between the sets of one sweep
    always = ("cpu", "memory", "network")
    assert all(row["up"] == 1 for row in rows(tmp_path, "collector") if row["device"] in always)
    [recovery] = [row["report"] for row in loops if row["report"]]
    *_, last = read_segment(recovered)
    assert isinstance(last, RecordFrame)
    torn_bytes = last.value["torn_bytes"]
    whole = recovered.stat().st_size - len(encode_frame({"kind": "record", "record": "recovered", "value": last.value}))
    assert whole + torn_bytes == size
    assert recovery == f"recovered 1 segments of dead writers, {torn_bytes} torn bytes cut"


def test_a_plug_in_is_found_by_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "good = plugged:Good\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    sources, refused = plugged_in_sources({"cpu"})
    assert [source.name for source in sources] == ["good"]
    assert all(source.timeout_seconds for source in sources)
    assert refused == []


def test_a_broken_plug_in_is_reported_and_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(
        tmp_path,
        "gone = nowhere:Gone\nraising = plugged:Raising\nplain = plugged:Plain\ntaken = plugged:Taken\n"
        "keyed = plugged:Keyed\ngood = plugged:Good\n",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    statuses = [status for status in survey(Host(RECORDED), AgentSettings(RECORDED)) if status.name not in OURS]
    reasons = {status.name: str(status.reason) for status in statuses if not status.available}
    assert "nowhere" in reasons.pop("gone")
    assert "no licence" in reasons.pop("raising")
    assert "expected a collector" in reasons.pop("plain")
    assert "another collector's" in reasons.pop("taken")
    assert "added by the agent" in reasons.pop("keyed")
    assert reasons == {}
    sweep_once(AgentSettings(tmp_path / "spool", node="n1", root=RECORDED))
    assert outcome(tmp_path / "spool", "raising")["up"] == 0
    assert [row["value"] for row in rows(tmp_path / "spool", "good")] == [42]


def install(site: Path, points: str) -> None:
    (site / "plugged.py").write_text(
        "from crosswind.data.schema.metric import Column, MetricSet, Sample\n"
        "class Good:\n"
        "    metric_set = MetricSet('good', 'fine', (Column('value', 'the answer'),))\n"
        "    def available(self): return True\n"
        "    def read(self): yield Sample('d', {'value': 42})\n"
        "class Taken(Good): metric_set = MetricSet('cpu', 'ours', ())\n"
        "class Keyed(Good): metric_set = MetricSet('keyed', 'has a key', (Column('node', 'whose'),))\n"
        "class Plain: pass\n"
        "def Raising(): raise PermissionError('no licence')\n"
    )
    (site / "plugged-1.0.dist-info").mkdir()
    (site / "plugged-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    (site / "plugged-1.0.dist-info" / "entry_points.txt").write_text(f"[crosswind.collectors]\n{points}")


def test_the_survey_says_what_is_missing_and_why(tmp_path: Path) -> None:
    shutil.copytree(RECORDED / "proc", tmp_path / "proc")
    shutil.rmtree(tmp_path / "proc" / "pressure")
    statuses = {status.name: status for status in survey(Host(tmp_path), AgentSettings(tmp_path))}
    assert statuses["cpu"].available
    assert not statuses["pressure"].available
    assert "pressure/cpu: No such file or directory" in str(statuses["pressure"].reason)


def test_a_source_that_hangs_is_down_and_delays_nobody(tmp_path: Path) -> None:
    """The clockwork takes 10 s; sweeps of 0.05 s go on beside it, and the end does not wait for it."""
    stuck, quick, stop = Clockwork(seconds=10), Quick(), threading.Event()
    source = Source("stuck", lambda host, options: stuck, advice="oil", timeout_seconds=0.1)
    with SpoolWriter(tmp_path, "n1") as spool:
        sweep = Sweep([timed(stuck, source), timed(quick)], spool, node="n1", boot_id=None)
        threading.Timer(0.5, stop.set).start()
        begin = time.monotonic()
        Agent(sweep, spool, interval_seconds=0.05).run(stop)
    assert time.monotonic() - begin < 8
    assert len(rows(tmp_path, "quick")) >= 4
    reasons = [str(row["reason"]) for row in rows(tmp_path, "collector") if row["device"] == "stuck"]
    assert reasons
    assert all("no answer for" in reason for reason in reasons)
    assert rows(tmp_path, "clockwork") == []


def test_a_source_has_its_own_pace_at_instants_that_all_nodes_share(tmp_path: Path) -> None:
    second = 1_000_000_000
    daily, quick = Clockwork(), Quick()
    source = Source("daily", lambda host, options: daily, advice="oil", interval_seconds=10)
    with SpoolWriter(tmp_path, "n1") as spool:
        sweep = Sweep([timed(daily, source), timed(quick)], spool, node="n1", boot_id=None)
        taken = []
        for tick in range(1_000_000_007, 1_000_000_032):
            before = len(daily.readings)
            sweep.take(tick * second)
            taken += [tick] * (len(daily.readings) - before)
    assert taken == [1_000_000_007, 1_000_000_010, 1_000_000_020, 1_000_000_030]
    assert len(rows(tmp_path, "quick")) == 25


def test_an_absent_source_is_looked_at_once_a_minute_and_is_back_when_it_is_there(tmp_path: Path) -> None:
    second = 1_000_000_000
    absent = UnavailableError("/sys/class/gone: No such file or directory")
    shy = Shy([absent] * 5 + [Sample("a", {"turns": 1})])
    with SpoolWriter(tmp_path, "n1") as spool:
        sweep = Sweep([timed(shy)], spool, node="n1", boot_id=None)
        for tick in range(600, 600 + 240):
            sweep.take(tick * second)
    up = [row["up"] for row in rows(tmp_path, "collector")]
    # Three looks at once (600, 601, 602), then at the minutes 660 and 720; at 780 it is there, and stays.
    assert up == [0] * 5 + [1] * 60
    assert rows(tmp_path, "collector")[-1]["failures_total"] == 5


def test_settings_read_again_change_pace_and_sources_and_wrong_ones_change_nothing(tmp_path: Path) -> None:
    stop, hangup = threading.Event(), threading.Event()
    spool = tmp_path / "spool"
    answers: list[AgentSettings | Exception] = [
        AgentSettings(spool, 0.03, node="n1", root=RECORDED, sources={"memory": {"enabled": False}}),
        InvalidInputError("agent.toml: speed: unknown"),
        AgentSettings(spool, 0.03, node="n1", root=RECORDED, sources={"nothing": {}}),
    ]
    given = iter(answers)

    def read() -> AgentSettings:
        answer = next(given)
        if isinstance(answer, Exception):
            raise answer
        return answer

    wanted = AgentSettings(spool, 0.05, node="n1", root=RECORDED)
    thread = threading.Thread(target=run_agent, args=(wanted, stop, Reload(hangup, read)))
    thread.start()
    try:
        for _ in answers:
            time.sleep(0.2)
            hangup.set()
            until = time.monotonic() + 10
            while hangup.is_set() and time.monotonic() < until:
                time.sleep(0.01)
        time.sleep(0.2)
    finally:
        stop.set()
        thread.join()
    reports = [str(row["report"]) for row in rows(spool, "agent") if row["report"]]
    assert reports[0] == "settings read again"
    assert "settings left as they were: agent.toml: speed: unknown" in reports[1]
    assert "sources.nothing: unknown; expected one of cpu" in reports[2]
    last_memory = max(int(str(row["ts_ns"])) for row in rows(spool, "memory"))
    [renewed] = [int(str(row["ts_ns"])) for row in rows(spool, "agent") if row["report"] == reports[0]]
    assert last_memory < renewed
    assert max(int(str(row["ts_ns"])) for row in rows(spool, "cpu")) > renewed


def test_settings_that_need_a_restart_are_reported_and_left_as_they_were(tmp_path: Path) -> None:
    stop, hangup, spool = threading.Event(), threading.Event(), tmp_path / "spool"
    wanted = AgentSettings(spool, 0.05, node="n1", root=RECORDED)
    other = AgentSettings(tmp_path / "elsewhere", 0.05, node="n2", root=RECORDED)
    thread = threading.Thread(target=run_agent, args=(wanted, stop, Reload(hangup, lambda: other)))
    thread.start()
    hangup.set()
    time.sleep(0.4)
    stop.set()
    thread.join()
    [report] = [str(row["report"]) for row in rows(spool, "agent") if row["report"]]
    assert report == "settings read again; a restart is needed for spool, node"
    assert {row["node"] for row in rows(spool, "cpu")} == {"n1"}
    assert not (tmp_path / "elsewhere").exists()


def test_a_hung_source_keeps_its_one_thread_through_reloads(tmp_path: Path) -> None:
    stuck = Clockwork(seconds=3)
    source = Source("rusty", lambda host, options: stuck, advice="oil", timeout_seconds=0.05)
    with SpoolWriter(tmp_path, "n1") as spool:
        agent = Agent(Sweep([timed(stuck, source)], spool, node="n1", boot_id=None), spool, interval_seconds=1.0)
        for _ in range(4):
            agent.sweep()
            time.sleep(0.1)
            hung = agent.sweeper.hung()
            assert list(hung) == ["rusty"]
            agent.renew(Sweep([timed(stuck, source, hung["rusty"])], spool, node="n1", boot_id=None), 1.0)
    assert len(stuck.readings) == 1
    assert len([thread for thread in threading.enumerate() if thread.name == "source rusty"]) == 1
    assert sum(row["up"] == 0 for row in rows(tmp_path, "collector")) >= 3


def test_a_full_disk_is_reported_once_and_its_end_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    spool = SpoolWriter(tmp_path / "spool", "n1")
    agent = Agent(Sweep([timed(Clockwork())], spool, node="n1", boot_id=None), spool, interval_seconds=1.0)
    for lost in (5, 2):
        spool.seal()  # so that a file is to be opened
        shutil.rmtree(tmp_path / "spool")
        (tmp_path / "spool").write_text("in the way")
        for _ in range(lost):
            agent.sweep()
        (tmp_path / "spool").unlink()
        (tmp_path / "spool").mkdir()
        agent.sweep()
    messages = [record.getMessage().partition(":")[0] for record in caplog.records]
    first, second = ("sweeps are kept again; 5 were lost", "sweeps are kept again; 2 were lost")
    assert messages == ["sweeps are lost", first, "sweeps are lost", second]
    assert agent.tally.lost_sweeps_total == 7


def test_records_that_a_full_disk_refuses_are_reported_once_and_kept_at_last(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_directory, blocked = tmp_path / "run", tmp_path / "spool"
    run_directory.mkdir()
    announce(run_directory, run_id="r1", rank=0, node="n1")
    with SpoolWriter(blocked, "n1") as spool:
        agent = Agent(
            Sweep([], spool, node="n1", boot_id=None),
            spool,
            interval_seconds=1.0,
            occupancy=Occupancy("n1", run_directory=run_directory),
        )
        blocked.rmdir()
        blocked.write_text("in the way")
        for _ in range(3):
            agent.finish()
        blocked.unlink()
        agent.finish()
    messages = [record.getMessage().partition(":")[0] for record in caplog.records]
    again = "records of jobs and ranks are kept again, after 3 attempts"
    assert [text for text in messages if text.startswith("records")] == ["records of jobs and ranks wait", again]
    frames = (frame for path in sealed_segments(blocked) for frame in read_frames(path))
    kept = [(frame.record, frame.value.get("run_id")) for frame in frames if isinstance(frame, RecordFrame)]
    assert ("placement", "r1") in kept


def test_a_clock_set_back_while_waiting_delays_a_sweep_by_two_intervals_at_most(tmp_path: Path) -> None:
    quick, stop = Quick(), threading.Event()
    with SpoolWriter(tmp_path, "n1") as spool:
        agent = Agent(Sweep([timed(quick)], spool, node="n1", boot_id=None), spool, interval_seconds=0.1)
        ahead = iter([20, *[1] * 100])
        agent._next_tick = lambda last: time.time_ns() // 100_000_000 + next(ahead)  # type: ignore[method-assign]
        threading.Timer(1.0, stop.set).start()
        agent.run(stop)
    assert len(quick.readings) >= 4  # the first tick was two seconds ahead, as if the clock had been set back


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "spool" / "agent.lock").symlink_to(tmp_path / "victim")
    with pytest.raises(UnavailableError, match=r"agent\.lock"):
        sweep_once(AgentSettings(tmp_path / "spool", root=RECORDED))
    assert (tmp_path / "victim").read_text() == "precious"


def test_a_real_agent_reads_its_settings_again_on_hangup_and_ends_on_request(tmp_path: Path) -> None:
    settings = tmp_path / "agent.toml"
    settings.write_text("interval_seconds = 0.05\n")
    command = [sys.executable, "-m", "crosswind.cli.main", "agent", "--config", str(settings), "--spool", str(tmp_path)]
    with subprocess.Popen(command) as agent:
        until = time.monotonic() + 20
        while not open_files(tmp_path):
            assert time.monotonic() < until
            time.sleep(0.02)
        settings.write_text("interval_seconds = 0.05\n[sources.cpu]\nenabled = false\n")
        agent.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        agent.send_signal(signal.SIGTERM)
        assert agent.wait(20) == 0
    own = rows(tmp_path, "agent")
    [renewed] = [int(str(row["ts_ns"])) for row in own if row["report"] == "settings read again"]
    assert max(int(str(row["ts_ns"])) for row in rows(tmp_path, "cpu")) < renewed
    assert max(int(str(row["ts_ns"])) for row in rows(tmp_path, "memory")) > renewed


def test_the_agent_reports_what_it_costs_and_how_well_it_knows_the_time(tmp_path: Path) -> None:
    sweep_once(AgentSettings(tmp_path, node="n1", root=RECORDED))
    [own] = rows(tmp_path, "agent")
    assert 0 < float(str(own["cpu_seconds_total"])) <= time.process_time()
    assert int(str(own["resident_bytes"])) > 1000  # pages; the scale is the page's size
    assert own["clock_synchronized"] in (0, 1, None)
    assert float(str(own["sweep_duration_seconds"])) > 0


def test_a_clock_set_back_makes_no_rush_and_one_set_forward_counts_the_ticks_left_out(tmp_path: Path) -> None:
    with SpoolWriter(tmp_path, "n1") as spool:
        agent = Agent(Sweep([], spool, node="n1", boot_id=None), spool, interval_seconds=1.0)
        now = time.time_ns() // 1_000_000_000
        assert agent._next_tick(now + 3600) <= now + 2  # the clock was an hour ahead
        assert agent.tally.missed_ticks_total == 0
        assert agent._next_tick(now - 60) >= now + 1
        assert agent.tally.missed_ticks_total in (60, 61)


def test_a_real_agent_shows_its_last_sweep_until_it_ends(tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "token").write_text("s3cret" * 4)
    (tmp_path / "token").chmod(0o600)
    settings = tmp_path / "agent.toml"
    settings.write_text(f'[metrics]\nlisten = "0.0.0.0:{port}"\ntoken_file = "{tmp_path}/token"\n')
    command = [sys.executable, "-m", "crosswind.cli.main", "agent", "--config", str(settings), "--spool", str(tmp_path)]
    request = Request(f"http://127.0.0.1:{port}/metrics", headers={"Authorization": "Bearer " + "s3cret" * 4})
    with subprocess.Popen(command) as agent:
        until, text = time.monotonic() + 20, ""
        while "collector_missed_ticks_total" not in text:
            assert time.monotonic() < until
            with suppress(OSError), build_opener(ProxyHandler({})).open(request, timeout=5) as answer:
                text = answer.read().decode()
            time.sleep(0.1)
        agent.terminate()
        assert agent.wait(20) == 0
    total = int(next(line for line in text.splitlines() if line.startswith("node_memory_MemTotal_bytes ")).split()[1])
    assert total == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 'collector_capability{source="cpu"} 1' in text
