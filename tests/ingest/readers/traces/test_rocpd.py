"""rocpd's SQLite files give a trace for each process on each device; these are made by its public schema."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from crosswind.data.schema.errors import MalformedError
from crosswind.data.traces.trace import Kind, RankTrace
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.traces.rocpd import RocpdReader

ID = "_0000abcd_12"
SCHEMA = f"""
create table rocpd_string{ID} (id integer primary key, guid text, string text);
create table rocpd_info_node{ID} (id integer primary key, hostname text);
create table rocpd_info_process{ID} (id integer primary key, nid integer, pid integer);
create table rocpd_info_thread{ID} (id integer primary key, tid integer);
create table rocpd_info_agent{ID} (id integer primary key, type text, type_index integer);
create table rocpd_info_kernel_symbol{ID} (id integer primary key, display_name text);
create table rocpd_event{ID} (id integer primary key, category_id integer, stack_id integer);
create table rocpd_region{ID} (id integer primary key, nid integer, pid integer, tid integer, start bigint, end bigint,
  name_id integer, event_id integer);
create table rocpd_kernel_dispatch{ID} (id integer primary key, nid integer, pid integer, tid integer, agent_id integer,
  kernel_id integer, queue_id integer, stream_id integer, start bigint, end bigint, event_id integer);
create table rocpd_memory_copy{ID} (id integer primary key, nid integer, pid integer, start bigint, end bigint,
  name_id integer, dst_agent_id integer, src_agent_id integer, size integer, stream_id integer, event_id integer);
create view rocpd_kernel_dispatch as select * from rocpd_kernel_dispatch{ID};
insert into rocpd_string{ID} values (1, '', 'HIP_RUNTIME_API_EXT'), (2, '', 'MARKER_CORE_RANGE_API'),
  (3, '', 'hipLaunchKernel'), (4, '', 'step 2'), (5, '', 'MEMORY_COPY_DEVICE_TO_HOST');
insert into rocpd_info_node{ID} values (1, 'node7');
insert into rocpd_info_process{ID} values (1, 1, 4711);
insert into rocpd_info_thread{ID} values (1, 4712);
insert into rocpd_info_agent{ID} values (1, 'CPU', 0), (2, 'GPU', 0), (3, 'GPU', 1);
insert into rocpd_info_kernel_symbol{ID} values (1, 'gemm'), (2, 'rcclGenericKernel');
insert into rocpd_event{ID} values (1, 1, 77), (2, 1, 77), (3, 2, 78), (4, 1, 79);
insert into rocpd_region{ID} values (1, 1, 1, 1, 5, 8, 3, 1), (2, 1, 1, 1, 0, 90, 4, 3);
insert into rocpd_kernel_dispatch{ID} values (1, 1, 1, 1, 2, 1, 1, 6, 10, 30, 2), (2, 1, 1, 1, 2, 2, 1, 6, 30, 40, 9),
  (3, 1, 1, 1, 3, 1, 1, 6, 12, 32, null);
insert into rocpd_memory_copy{ID} values (1, 1, 1, 50, 60, 5, 1, 2, 256, 6, 4);
"""


def made(path: Path, script: str = "") -> Path:
    """A file by the schema, then changed."""
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.executescript(SCHEMA + script)
    return path


def read(path: Path) -> list[RankTrace]:
    """Return all ranks."""
    assert RocpdReader().recognises(path, path.read_bytes()[:65536])
    return list(RocpdReader().read(path, Report(str(path), "rocpd")))


def test_each_device_of_a_process_is_a_rank(tmp_path: Path) -> None:
    first, second = read(made(tmp_path / "a.db"))
    by_name = dict(zip(first.names_of(first.events), map(Kind, first.events.kind), strict=True))
    assert by_name == {
        "step 2": Kind.STEP,
        "hipLaunchKernel": Kind.CALL,
        "gemm": Kind.KERNEL,
        "rcclGenericKernel": Kind.COLLECTIVE,
        "MEMORY_COPY_DEVICE_TO_HOST": Kind.COPY,
    }
    assert first.events.of(Kind.KERNEL).correlation.tolist() == first.events.of(Kind.CALL).correlation.tolist() == [77]
    assert (first.node, first.span, second.span) == ("node7", (10, 60), (12, 32))
    assert {place.label for place in first.places} == {"stream 6", "thread 4712"}


HOSTILE = [
    f"drop table rocpd_string{ID}",
    f"alter table rocpd_kernel_dispatch{ID} drop column start",
    f"update rocpd_kernel_dispatch{ID} set start = 'x', agent_id = 'y', kernel_id = x'00'",
    f"update rocpd_event{ID} set stack_id = 'x', category_id = 1e300",
    f"update rocpd_info_agent{ID} set type = 3, type_index = 'x'",
    f"delete from rocpd_kernel_dispatch{ID}; delete from rocpd_memory_copy{ID}",
    f"drop table rocpd_kernel_dispatch{ID}",
]


@pytest.mark.parametrize("script", HOSTILE)
def test_hostile_values_are_read_or_are_an_error(tmp_path: Path, script: str) -> None:
    path = made(tmp_path / "a.db", "drop view rocpd_kernel_dispatch;" + script)
    with contextlib.suppress(MalformedError):
        assert read(path)


def test_another_schema_is_an_error_that_names_the_column(tmp_path: Path) -> None:
    script = f"drop view rocpd_kernel_dispatch; alter table rocpd_kernel_dispatch{ID} rename column start to start_id"
    with pytest.raises(MalformedError, match="has no column start; expected rocpd's schema"):
        read(made(tmp_path / "a.db", script))
