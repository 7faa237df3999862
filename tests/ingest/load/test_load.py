import json
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.injection import Injected
from crosswind.data.schema.metric import Column, Kind, MetricSet
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import QUOTED, Loaded, load_segment, load_spool
from crosswind.ingest.spool.abandoned import CLOCK, is_abandoned_in
from crosswind.ingest.spool.spool import SpoolWriter, sealed_segments

LINK = MetricSet("link", "a link", (Column("ts_ns", "time", Kind.KEY), Column("heat_celsius", "heat", scale=0.1)))
RUN = {"run_id": "r1", "workload": "toy", "system": "lab"}
RANK = {"run_id": "r1", "rank": 0, "node": "n1", "pid": 7, "started_ns": 1}
STEPS: dict[str, list[Any]] = {"ts_ns": [1, 2], "run_id": ["r1", "r1"], "rank": [0, 0], "step": [0, 1]}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as store:
        yield store


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    folder = tmp_path / "spool"
    folder.mkdir()
    return folder


def write(spool: Path, origin: str, act: Callable[[SpoolWriter], object]) -> Path:
    before = set(sealed_segments(spool))
    with SpoolWriter(spool, origin) as writer:
        act(writer)
    [path] = set(sealed_segments(spool)) - before
    return path


def die(spool: Path, code: str) -> None:
    """Appends to the spool in a process that ends without sealing."""
    prelude = (
        "import os\nfrom pathlib import Path\nfrom crosswind.data.schema.steps import STEP\n"
        "from crosswind.ingest.spool.spool import SpoolWriter\n"
        f"writer = SpoolWriter(Path({str(spool)!r}), 'r1-rank0')\nRUN = {RUN!r}\nRANK = {RANK!r}\nSTEPS = {STEPS!r}\n"
    )
    subprocess.run([sys.executable, "-c", f"{prelude}{code}\nos._exit(9)"], check=False)


def frames(*values: object) -> bytes:
    payloads = [json.dumps(value).encode() for value in values]
    return b"".join(struct.pack("<II", len(payload), zlib.crc32(payload)) + payload for payload in payloads)


def raw_segment(spool: Path, content: bytes, name: str = "00000000000000000001-00000000.n1.segment") -> Path:
    path = spool / name
    path.write_bytes(content)
    return path


def set_frame(columns: list[dict[str, object]], name: str = "hostile") -> dict[str, object]:
    plain = {"description": "", "kind": "gauge", "dtype": "int64", "unit": "", "width_bits": 64, "on_full": "wrap"}
    full = [{**plain, "scale": 1.0, **column} for column in [{"name": "ts_ns"}, *columns]]
    return {"kind": "set", "set": {"name": name, "description": "", "columns": full, "version": 1}}


def counts(store: Store) -> dict[str, int]:
    with store.lake.connect() as connection:
        return {
            name: connection.execute(f'select count(*) from "{name}"').fetchall()[0][0] for name in store.lake.sets()
        }


def run_state(store: Store, run_id: str = "r1") -> RunState:
    with store.catalog.read() as session:
        return session.runs.get(run_id).state


def a_whole_run(writer: SpoolWriter) -> None:
    writer.append_record("run", RUN | {"state": "running", "started_ns": 1})
    writer.append_record("rank", RANK)
    writer.append_rows(STEP, STEPS)
    writer.append_rows(LINK, {"ts_ns": [1, 2, 3], "heat_celsius": [400, None, 410]})
    writer.append_record("run", RUN | {"state": "completed", "ended_ns": 9, "exit_code": 0})


def test_a_spool_becomes_runs_ranks_and_rows_and_is_empty_then(store: Store, spool: Path) -> None:
    write(spool, "r1-rank0", a_whole_run)
    loaded = load_spool(store, spool)
    assert loaded == Loaded(batches=1, rows=5, runs={"r1"})
    assert counts(store) == {"step": 2, "link": 3}
    with store.catalog.read() as session:
        assert session.runs.get("r1") == Run(
            "r1", "toy", "lab", RunState.COMPLETED, started_ns=1, ended_ns=9, exit_code=0
        )
        assert [rank.node for rank in session.ranks.of("r1")] == ["n1"]
        assert session.ingested().rows == 5
    assert sealed_segments(spool) == []
    assert store.lake.frame("select heat_celsius from link order by ts_ns")["heat_celsius"].iloc[0] == 40.0


def test_the_same_segment_again_changes_nothing(store: Store, spool: Path) -> None:
    path = write(spool, "r1-rank0", a_whole_run)
    content = path.read_bytes()
    load_spool(store, spool)
    path.write_bytes(content)  # a copy that was sent twice
    before = sorted(file.stat().st_mtime_ns for file in store.lake.root.rglob("*.parquet"))
    assert load_spool(store, spool) == Loaded(duplicates=1)
    assert sorted(file.stat().st_mtime_ns for file in store.lake.root.rglob("*.parquet")) == before
    assert sealed_segments(spool) == []


def test_the_same_content_of_two_writers_is_two_batches(store: Store, spool: Path) -> None:
    for origin in ("n1", "n2"):
        write(spool, origin, lambda writer: writer.append_rows(LINK, {"ts_ns": [1]}))
    assert load_spool(store, spool).rows == 2
    assert counts(store) == {"link": 2}


def test_an_ingest_that_died_between_lake_and_catalog_doubles_nothing(store: Store, spool: Path) -> None:
    path = write(spool, "r1-rank0", a_whole_run)
    content = path.read_bytes()
    load_spool(store, spool)
    (store.home / "catalog.sqlite").rename(store.home / "lost.sqlite")  # as if the commit had never come
    path.write_bytes(content)
    with Store.open(store.home) as again:
        assert load_spool(again, spool).batches == 1
        assert counts(again) == {"step": 2, "link": 3}


def test_a_torn_tail_is_cut_said_and_nothing_else_is_lost(store: Store, spool: Path) -> None:
    die(spool, "writer.append_record('run', RUN | {'state': 'running'}); writer.append_rows(STEP, STEPS)")
    [path] = spool.glob("*.open")
    with path.open("ab") as file:
        file.write(b"\x40\x00\x00\x00torn")
    loaded = load_spool(store, spool)
    assert (loaded.batches, loaded.rows) == (1, 2)
    [problem] = loaded.problems
    assert problem.startswith("8 torn bytes were cut off (")
    assert list(spool.glob("*.rejected")) == []  # there is nothing in it that is not stored


def test_a_run_whose_writer_died_is_lost(store: Store, spool: Path) -> None:
    die(spool, "writer.append_record('run', RUN | {'state': 'running'})")
    load_spool(store, spool)
    assert run_state(store) is RunState.LOST


def test_a_run_is_lost_even_when_its_beginning_was_stored_long_before_its_writer_died(
    store: Store, spool: Path
) -> None:
    write(spool, "r1-rank0", lambda writer: writer.append_record("run", RUN | {"state": "running"}))
    load_spool(store, spool)
    assert run_state(store) is RunState.RUNNING
    die(spool, "writer.append_rows(STEP, STEPS)")  # a later segment of the same writer
    load_spool(store, spool)
    assert run_state(store) is RunState.LOST


def test_a_run_that_ended_is_not_lost_by_a_rank_that_died_late(store: Store, spool: Path) -> None:
    write(spool, "r1-rank0", a_whole_run)
    die(spool, "writer.append_record('rank', RANK | {'rank': 1}); writer.append_rows(STEP, STEPS)")
    load_spool(store, spool)
    assert run_state(store) is RunState.COMPLETED


def test_an_agent_that_died_loses_no_run(store: Store, spool: Path) -> None:
    write(spool, "r1-rank0", lambda writer: writer.append_record("run", RUN | {"state": "running"}))
    other = replace(STEP, name="process")
    write(spool, "agent", lambda writer: writer.append_rows(other, {"ts_ns": [1], "run_id": ["r1"]}))
    [_, agent] = sealed_segments(spool)
    agent.write_bytes(
        agent.read_bytes() + frames({"kind": "record", "record": "recovered", "value": {"torn_bytes": 0}})
    )
    assert load_spool(store, spool).problems == []
    assert run_state(store) is RunState.RUNNING


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)])
def test_what_is_known_of_a_run_does_not_depend_on_which_record_came_first(
    store: Store, order: tuple[int, ...]
) -> None:
    wrapper = Run(
        "r1", "torchrun", "lab", RunState.FAILED, started_ns=1, ended_ns=90, exit_code=1, command=("torchrun",)
    )
    rank = Run("r1", "toy", "lab", RunState.COMPLETED, 2, {"batch": 8}, started_ns=10, ended_ns=80)
    other = Run("r1", "toy", "lab", RunState.RUNNING, 2, {"batch": 8}, started_ns=12)
    with store.catalog.write() as session:
        for number in order:
            session.runs.merge((wrapper, rank, other)[number])
        merged = session.runs.get("r1")
    assert (merged.workload, merged.state, merged.exit_code) == ("toy", RunState.FAILED, 1)
    assert (merged.started_ns, merged.ended_ns, merged.world_size) == (1, 90, 2)


def test_a_rank_that_failed_outweighs_one_that_thinks_it_completed(store: Store) -> None:
    for order in ((RunState.FAILED, RunState.COMPLETED), (RunState.COMPLETED, RunState.FAILED)):
        with store.catalog.write() as session:
            for state in order:
                session.runs.merge(Run(f"r-{order[0]}", "toy", "lab", state))
            assert session.runs.get(f"r-{order[0]}").state is RunState.FAILED


def test_a_flipped_bit_keeps_the_segment_aside_with_what_could_not_be_read(store: Store, spool: Path) -> None:
    path = write(spool, "r1-rank0", a_whole_run)
    content = bytearray(path.read_bytes())
    content[-5] ^= 1  # in the last frame: the end of the run
    path.write_bytes(content)
    loaded = load_spool(store, spool)
    assert loaded.rows == 5
    [problem] = loaded.problems
    assert path.name in problem
    assert "checksum" in problem
    assert path.with_suffix(".rejected").read_bytes() == content
    assert run_state(store) is RunState.RUNNING


def test_a_file_that_is_no_segment_does_not_keep_others_from_being_stored(store: Store, spool: Path) -> None:
    raw_segment(spool, b"not a segment", "0-notes.segment")
    raw_segment(spool, os.urandom(1000))
    (spool / "00000000000000000002-00000000.n1.segment").mkdir()
    write(spool, "r1-rank0", a_whole_run)
    loaded = load_spool(store, spool)
    assert loaded.rows == 5
    assert len(loaded.problems) == 3
    assert (spool / "0-notes.rejected").read_bytes() == b"not a segment"
    assert load_spool(store, spool).batches == 0


def test_a_link_or_a_pipe_in_the_place_of_a_segment_is_passed_over(store: Store, spool: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    (spool / "00000000000000000001-00000000.n1.segment").symlink_to(tmp_path / "secret")
    os.mkfifo(spool / "00000000000000000002-00000000.n1.segment")
    write(spool, "r1-rank0", a_whole_run)
    loaded = load_spool(store, spool)
    assert loaded.rows == 5
    assert len(loaded.problems) == 2
    assert all("expected a plain file" in problem for problem in loaded.problems)
    assert list(spool.glob("*.rejected")) == []


def test_a_segment_that_cannot_be_put_aside_does_not_keep_others_from_being_stored(store: Store, spool: Path) -> None:
    raw_segment(spool, b"not a segment", "0-notes.segment")
    (spool / "0-notes.rejected").mkdir()
    write(spool, "r1-rank0", a_whole_run)
    loaded = load_spool(store, spool)
    assert loaded.rows == 5
    assert "cannot be kept aside: Is a directory" in loaded.problems[-1]


def test_no_link_is_followed_to_a_lock_or_a_clock(store: Store, spool: Path, tmp_path: Path) -> None:
    for name in ("ingest.lock", CLOCK):
        (spool / name).symlink_to(tmp_path / f"of root, {name}")
    with pytest.raises(UnavailableError, match="symbolic links"):
        load_spool(store, spool)
    nfs = tmp_path / "mountinfo"
    nfs.write_text(f"36 22 0:32 / {spool} rw - nfs4 server:/home rw\n")
    with pytest.raises(OSError, match="symbolic links"):
        is_abandoned_in(spool, "n1", nfs)
    assert list(tmp_path.glob("of root*")) == []


HOSTILE_SETS = [
    set_frame([], name="../../etc"),
    set_frame([], name="x; drop table runs"),
    set_frame([{"name": 'a" from link; --'}]),
    set_frame([{"name": "ts_ns"}]),
    set_frame([{"name": ["x"]}]),
    set_frame([{"name": "x", "scale": True}]),
    set_frame([{"name": "x", "scale": 0}]),
    set_frame([{"name": "x", "dtype": "string", "scale": 2.0}]),
    set_frame([{"name": "x", "dtype": "pickle"}]),
    set_frame([{"name": "x", "kind": "weather"}]),
    set_frame([{"name": f"c{number}"} for number in range(2000)]),
    {"kind": "set", "set": []},
]


@pytest.mark.parametrize("hostile", HOSTILE_SETS, ids=range(len(HOSTILE_SETS)))
def test_a_hostile_set_is_kept_aside_and_what_is_stored_still_answers(
    store: Store, spool: Path, hostile: dict[str, object]
) -> None:
    write(spool, "n1", lambda writer: writer.append_rows(LINK, {"ts_ns": [1]}))
    rows = {"kind": "rows", "set": "hostile", "columns": {"ts_ns": [1]}}
    path = raw_segment(spool, frames(hostile, rows))
    loaded = load_spool(store, spool)
    assert loaded.rows == 1
    assert len(loaded.problems) == 1
    assert path.with_suffix(".rejected").exists()
    assert counts(store) == {"link": 1}


def test_what_the_lab_injected_is_stored_once_however_often_it_comes(store: Store, spool: Path) -> None:
    injection = {
        "run_id": "r1",
        "kind": "rate_cap",
        "strength": 100,
        "unit": "Mbit/s",
        "node": "lab-1",
        "rank": 0,
        "started_ns": 5,
        "ended_ns": 9,
    }
    for origin in ("r1-lab", "r1-again"):
        write(spool, origin, lambda writer: writer.append_record("injection", injection))
    assert load_spool(store, spool) == Loaded(batches=2)
    with store.catalog.read() as session:
        assert session.injections.of_runs(["r1"]) == [Injected("r1", "rate_cap", 100.0, "Mbit/s", "lab-1", 0, 5, 9)]


def test_a_set_called_like_a_word_of_sql_is_stored_and_harms_no_query(store: Store, spool: Path) -> None:
    rows = {"kind": "rows", "set": "select", "columns": {"ts_ns": [1], "order": [2]}}
    raw_segment(spool, frames(set_frame([{"name": "order"}], name="select"), rows))
    assert load_spool(store, spool) == Loaded(batches=1, rows=1)
    assert counts(store) == {"select": 1}


@pytest.mark.parametrize("stored_first", [True, False])
def test_a_set_that_redefines_another_is_kept_aside(store: Store, spool: Path, stored_first: bool) -> None:
    fahrenheit = MetricSet("link", "", (LINK["ts_ns"], replace(LINK["heat_celsius"], scale=0.5)))
    path = write(spool, "n1", lambda writer: writer.append_rows(LINK, {"ts_ns": [1], "heat_celsius": [400]}))
    if stored_first:
        load_spool(store, spool)
        path = write(spool, "n2", lambda writer: writer.append_rows(fahrenheit, {"ts_ns": [2], "heat_celsius": [1]}))
    else:  # both in one segment
        other = frames({"kind": "set", "set": fahrenheit.as_json()})
        other += frames({"kind": "rows", "set": "link", "columns": {"ts_ns": [2], "heat_celsius": [1]}})
        path.write_bytes(path.read_bytes() + other)
    loaded = load_spool(store, spool)
    [problem] = loaded.problems
    assert "link.heat_celsius: int64 x 0.5, but what is stored is int64 x 0.1" in problem
    assert path.with_suffix(".rejected").exists()
    assert store.lake.frame("select heat_celsius from link")["heat_celsius"].tolist() == [40.0]


def test_records_of_unknown_kinds_and_shapes_are_reported_and_the_rest_is_stored(store: Store, spool: Path) -> None:
    def act(writer: SpoolWriter) -> None:
        writer.append_record("weather", {"wind": 3})
        writer.append_record("run", RUN | {"state": "running", "run_id": 5})
        a_whole_run(writer)

    path = write(spool, "r1-rank0", act)
    loaded = load_spool(store, spool)
    assert (loaded.rows, loaded.runs) == (5, {"r1"})
    assert [problem.removeprefix(f"{path.name}: ") for problem in loaded.problems] == [
        "record 'weather': expected run, rank, allocation, placement, injection, trace or recovered",
        "run record: run_id is 5, expected str",
    ]
    assert path.with_suffix(".rejected").exists()


def test_a_flood_of_refused_frames_is_counted_and_the_first_are_reported(store: Store, spool: Path) -> None:
    def act(writer: SpoolWriter) -> None:
        for _ in range(QUOTED + 30):
            writer.append_record("weather", {"wind": 3})

    write(spool, "n1", act)
    loaded = load_spool(store, spool)
    assert len(loaded.problems) == QUOTED + 1
    assert loaded.problems[-1].endswith(": 30 more frames refused")


def test_rows_of_unequal_sets_in_one_segment_are_all_there(store: Store, spool: Path) -> None:
    wider = MetricSet("link", "newer", (*LINK.columns, Column("up", "", dtype="bool")), version=2)

    def act(writer: SpoolWriter) -> None:
        writer.append_rows(LINK, {"ts_ns": [1], "heat_celsius": [10]})
        writer.append_rows(wider, {"ts_ns": [2], "up": [True]})
        writer.append_rows(LINK, {"ts_ns": [3]})

    write(spool, "n1", act)
    assert load_spool(store, spool) == Loaded(batches=1, rows=3)
    frame = store.lake.frame("select ts_ns, heat_celsius is null as cold, up from link order by ts_ns")
    assert frame["cold"].tolist() == [False, True, True]
    assert frame["up"].isna().tolist() == [True, False, True]


def test_two_ingests_at_once_store_everything_once(store: Store, spool: Path) -> None:
    for number in range(20):
        rows = {"ts_ns": [number, 1]}
        write(spool, f"n{number}", lambda writer, rows=rows: writer.append_rows(LINK, rows))  # type: ignore[misc]
    code = (
        "import sys; from pathlib import Path; from crosswind.data.store.store import Store;"
        "from crosswind.ingest.load.load import load_spool;"
        "loaded = load_spool(Store.open(Path(sys.argv[1])), Path(sys.argv[2]));"
        "print(loaded.rows, loaded.problems)"
    )
    command = [sys.executable, "-c", code, str(store.home), str(spool)]
    ingests = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [ingest.communicate()[0].split(maxsplit=1) for ingest in ingests]
    assert [ingest.returncode for ingest in ingests] == [0, 0]
    assert sum(int(rows) for rows, _ in outputs) == 40
    assert {problems.strip() for _, problems in outputs} == {"[]"}
    assert counts(store) == {"link": 40}


def test_a_store_that_does_not_answer_leaves_the_spool_as_it_was(store: Store, spool: Path) -> None:
    path = write(spool, "r1-rank0", a_whole_run)
    aside = store.lake.root.rename(store.home / "aside")
    store.lake.root.write_text("not a folder")
    with pytest.raises(UnavailableError, match=r"from spool .*spool into store .*store: .*lake"):
        load_spool(store, spool)
    assert sealed_segments(spool) == [path]
    with store.catalog.read() as session:
        assert session.runs.find(RunFilter(), limit=5) == []
    store.lake.root.unlink()
    aside.rename(store.lake.root)
    assert load_spool(store, spool).rows == 5


def test_a_spool_that_is_not_there_is_said(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="nosuch: no such folder"):
        load_spool(store, tmp_path / "nosuch")


def test_a_segment_that_another_took_meanwhile_is_unavailable_by_itself(store: Store, spool: Path) -> None:
    with pytest.raises(UnavailableError, match="gone"):
        load_segment(store, spool / "1-0.gone.segment", Loaded())


def test_jobs_and_ranks_of_a_node_reach_the_catalog_whatever_the_order_of_segments(store: Store, spool: Path) -> None:
    job = {"job_id": "7", "node": "n1", "sampled_as": "n1", "source": "prolog", "system": "lab"}
    rank = {"node": "n1", "pid": 4, "start_ticks": 9, "sampled_as": "n1", "source": "environment", "job_id": "7"}
    write(spool, "b", lambda writer: writer.append_record("allocation", job | {"ended_ns": 90}))
    write(spool, "a", lambda writer: writer.append_record("allocation", job | {"started_ns": 10, "gpus": ["0"]}))
    write(spool, "c", lambda writer: writer.append_record("placement", rank | {"rank": 3}))
    assert load_spool(store, spool).problems == []
    with store.catalog.read() as session:
        [allocation] = session.places.allocations("7")
        [placement] = session.places.placements_of_job("7")
    assert (allocation.started_ns, allocation.ended_ns, allocation.gpus) == (10, 90, ("0",))
    assert (placement.pid, placement.rank) == (4, 3)
