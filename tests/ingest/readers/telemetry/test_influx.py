"""InfluxDB's line protocol; the recorded points have every kind of field and escape of its reference."""

from pathlib import Path

from tests.ingest.trees import RECORDINGS

from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.telemetry.influx import InfluxReader

RECORDED = RECORDINGS / "influx" / "points.lp"
TIME = 1556813561098000000


def read(path: Path, node: str = "") -> tuple[list[tuple[object, ...]], Report]:
    """Time, node, name, labels and value of each row."""
    report = Report(str(path), "influx")
    [table] = InfluxReader().read(path, report, Context("lab", node=node))
    return [
        tuple(row[name] for name in ("ts_ns", "node", "name", "labels", "value")) for row in table.to_pylist()
    ], report


def test_every_number_becomes_a_row() -> None:
    rows, report = read(RECORDED)
    total = '{"cpu":"cpu-total"}'
    assert rows == [
        (TIME, "n1", "cpu.usage_user", total, 2.5),
        (TIME, "n1", "cpu.usage_idle", total, 97.5),
        (TIME, "n1", "cpu.uptime", total, 1234),
        (TIME, "n1", "cpu.boots", total, 3),
        (TIME + 10**9, None, "my disk,fast.free", '{"hostname":"n,2","path":"/a=b c"}', 1000),
    ]
    assert report.notes == ["3 fields that are texts, truths or no numbers were left out"]


def test_the_caller_may_name_the_node_and_tags_may_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "points.lp"
    path.write_text(f"load value=1 {TIME}\n")
    assert read(path, "n9")[0] == [(TIME, "n9", "load.value", "{}", 1)]
    assert read(path)[0][0][1] is None


def test_whole_numbers_that_are_rounded_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "points.lp"
    path.write_text(f"net bytes=9007199254740993i {TIME}\n")
    assert read(path)[1].notes == ["1 whole numbers from 2^53 on were rounded"]


def test_times_in_other_units_and_bad_points_are_quoted_and_the_others_read(tmp_path: Path) -> None:
    path = tmp_path / "points.lp"
    path.write_text(
        f"CREATE DATABASE telegraf WITH NAME autogen\n# DML\nload value=1 {TIME}\nload value=1 1556813561\n"
        f"load value=1\nload,host=n1 {TIME}\nload value= {TIME}\nload value=1,5 {TIME}\nload a=2 {TIME}\n"
    )
    rows, report = read(path)
    assert [row[4] for row in rows] == [1, 2]
    assert [(skipped.line, skipped.reason) for skipped in report.quoted] == [
        (4, "time is not between 2001 and 2262 in ns since 1970; write it with precision ns"),
        (5, "a point without a time"),
        (6, "no point: expected measurement,tag=text field=number time"),
        (7, "no point: expected measurement,tag=text field=number time"),
        (8, "no point: expected measurement,tag=text field=number time"),
    ]


def test_only_points_with_times_in_ns_are_recognised() -> None:
    for line in (b"load value=1\n", b"load value=1 1556813561\n", b"step=1 loss=2\n", b'up{a="b"} 1 1556813561098\n'):
        assert not InfluxReader().recognises(RECORDED, line)
    assert InfluxReader().recognises(RECORDED, b"# DDL\r\nload value=1 1556813561098000000\r\n")


def test_a_host_that_is_no_host_name_stays_a_label(tmp_path: Path) -> None:
    path = tmp_path / "points.lp"
    path.write_text(f"load,host=../../etc value=1 {TIME}\nload,host=.,hostname=n2 value=2 {TIME}\n")
    assert [row[1:] for row in read(path, "n9")[0]] == [
        ("n9", "load.value", '{"host":"../../etc"}', 1),
        ("n2", "load.value", '{"host":"."}', 2),
    ]


def test_a_line_of_long_tags_and_many_fields_is_given_in_portions(tmp_path: Path) -> None:
    path, tags = tmp_path / "points.lp", "t" * 16_000
    path.write_text(f"load,tag={tags} {','.join(f'f{number}=1' for number in range(9000))} {TIME}\n")
    report = Report(str(path), "influx")
    tables = list(InfluxReader().read(path, report, Context("lab")))
    assert [report.read, sum(map(len, tables))] == [9000, 9000]
    assert max(table.nbytes for table in tables) < 70 << 20
    assert len(tables) == 3


def test_names_and_tags_too_long_for_any_series_are_quoted(tmp_path: Path) -> None:
    path = tmp_path / "points.lp"
    path.write_text(f"load,tag={'t' * 400_000} a=1 {TIME}\nload {'f' * 1001}=1 {TIME}\nload a=1 {TIME}\n")
    rows, report = read(path)
    assert [row[4] for row in rows] == [1]
    assert [skipped.reason for skipped in report.quoted] == [
        "a measurement with tags of 400009 characters; expected at most 16384",
        "a measurement or field of more than 1000 characters",
    ]
