"""The reader of Prometheus' text format and OpenMetrics.

Recorded: node_exporter 1.5 over the tree `two_cores` (shortened), Prometheus 2.42's /federate and `promtool tsdb dump`.
"""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.ingest.exposition.shown import of_sources
from tests.ingest.trees import RECORDINGS, recorded_tree

from crosswind.data.lake.lake import set_of
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.metric import NODE_KEYS
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import Loaded
from crosswind.ingest.load.load_file import load_file
from crosswind.ingest.reader.lines import Block
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.telemetry.prometheus import PrometheusReader
from crosswind.ingest.series.known_series import KnownSeries
from crosswind.ingest.series.sample_lines import split
from crosswind.ingest.series.sample_values import samples_of
from crosswind.ingest.series.scrapes import Scrapes

FILES = RECORDINGS / "prometheus"
WRITTEN_NS = 1_790_000_000_123_456_789
OPEN_METRICS = r"""# HELP requests Requests, with a \\ and\na line end
# TYPE requests counter
requests_total{path="/a \"b\" {c}"} 3.0 # {trace_id="abc"} 3.0 1795299634.2945077
requests_created{path="/a \"b\" {c}"} 1.795299634294498e+09
# TYPE step_seconds histogram
# UNIT step_seconds seconds
step_seconds_bucket{le="0.1",rank="0"} 1.0 # {trace_id="q1"} 0.05
step_seconds_bucket{le="+Inf",rank="0"} 2.0
step_seconds_sum{rank="0"} 7.05
# TYPE loss gauge
loss NaN
# TYPE limit gauge
limit +Inf
# EOF
"""  # as the Python client 0.2x writes it, shortened


def read(path: Path, node: str = "n1") -> tuple[dict[str, list[dict[str, Any]]], Report]:
    report, sets = Report(str(path), "prometheus"), {}
    for table in PrometheusReader().read(path, report, Context("test", node=node)):
        sets.setdefault(set_of(table.schema).name, []).extend(table.to_pylist())
    return sets, report


def written(folder: Path, text: str) -> Path:
    path = folder / "scrape.prom"
    path.write_text(text)
    os.utime(path, ns=(WRITTEN_NS, WRITTEN_NS))
    return path


def series(sets: dict[str, list[dict[str, Any]]]) -> list[tuple[Any, ...]]:
    return [(row["name"], row["labels"], row["value"], row["kind"], row["unit"]) for row in sets["series"]]


def plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None and name != "ts_ns"}


@pytest.mark.parametrize("source", ["cpu", "network", "disk", "pressure"])
def test_what_node_exporter_shows_is_in_our_sets_as_our_own_collectors_read_it(source: str) -> None:
    sets, report = read(FILES / "node_exporter-1.5.txt")
    shown = of_sources(recorded_tree("two_cores"), [source])[source].rows
    names = [column.name for column in shown.metric_set.columns][len(NODE_KEYS) :]
    own = {str(row[0]): dict(zip(names, row[1:], strict=True)) for row in shown.rows}
    assert report.skipped == 0
    for row in sets[source]:
        present = {name: value for name, value in plain(row).items() if name not in ("node", "device")}
        assert present
        assert present == {name: own[row["device"]][name] for name in present}


def test_each_scrape_has_its_own_time() -> None:
    sets, _ = read(FILES / "node_exporter-1.5.txt")
    loads = [(row["ts_ns"], row["node"], row["load1"], row["load15"]) for row in sets["cpu"] if row["device"] == "all"]
    assert loads == [(1795299598810088000, "n1", 1.1, 0.6), (1795299599846383000, "n1", 1.1, 0.6)]


def test_samples_with_times_of_one_scrape_stand_in_one_row() -> None:
    sets, report = read(FILES / "federate.txt")
    assert [plain(row) for row in sets["cpu"]] == [
        {"node": "127.0.0.1", "device": "cpu0", "nice_seconds_total": 0, "user_seconds_total": 48615},
        {"node": "127.0.0.1", "device": "cpu1", "nice_seconds_total": 0, "user_seconds_total": 50862},
        {"node": "127.0.0.1", "device": "all", "load1": 1.1, "load15": 0.6, "load5": 0.83},
    ]
    assert {row["ts_ns"] for rows in sets.values() for row in rows} == {1795299663885000000}
    labels = '{"instance":"127.0.0.1:9778","job":"node"}'
    assert series(sets) == [("up", labels, 1.0, None, None)]
    assert report.read == 4


def test_a_dump_series_by_series_stays_one_row_a_sample() -> None:
    sets, report = read(FILES / "tsdb-dump.txt")
    assert sets.keys() == {"series"}
    assert report.read == len((FILES / "tsdb-dump.txt").read_text().splitlines()) == 42
    assert sets["series"][1] == {
        "ts_ns": 1795299658885000000,
        "node": "127.0.0.1",
        "device": "",
        "name": "node_cpu_seconds_total",
        "labels": '{"cpu":"0","instance":"127.0.0.1:9778","job":"node","mode":"nice"}',
        "value": 0.0,
        "kind": None,
        "unit": None,
    }


def test_open_metrics_has_kinds_units_exemplars_and_a_file_without_times_that_of_its_last_change(
    tmp_path: Path,
) -> None:
    sets, report = read(written(tmp_path, OPEN_METRICS))
    path = '{"path":"/a \\"b\\" {c}"}'
    assert series(sets) == [
        ("requests_total", path, 3.0, "counter", None),
        ("requests_created", path, 1795299634.294498, "gauge", None),
        ("step_seconds_bucket", '{"le":"0.1","rank":"0"}', 1.0, "counter", None),
        ("step_seconds_bucket", '{"le":"+Inf","rank":"0"}', 2.0, "counter", None),
        ("step_seconds_sum", '{"rank":"0"}', 7.05, "counter", "seconds"),
        ("limit", "{}", float("inf"), "gauge", None),
    ]
    assert {row["ts_ns"] for row in sets["series"]} == {WRITTEN_NS}
    assert report.notes == [
        "1 samples are NaN, which is no value: left out",
        "samples without a time got that of the file's last change: 2026-09-21T14:13:20Z",
    ]


def test_two_scrapes_without_times_are_refused(tmp_path: Path) -> None:
    for text in (OPEN_METRICS * 2, OPEN_METRICS.replace("# EOF\n", "") * 2, 'up{job="a"} 1\nb 2\n' * 2):
        with pytest.raises(MalformedError, match="a second scrape without times; expected a time behind each value"):
            read(written(tmp_path, text))


def test_a_scrape_may_begin_where_a_block_does(tmp_path: Path) -> None:
    report, known_series = Report("a", "prometheus"), KnownSeries("n1")
    scrapes = Scrapes(tmp_path, report, known_series, WRITTEN_NS)
    tables = []
    for number in range(3):
        text = (
            f"# TYPE x gauge\n# UNIT x s\n# TYPE y gauge\n# UNIT y s\nx 1\ny 2\nnode_time_seconds 178999999{number}\n"
            + "# EOF\n" * (number == 2)
        )
        comments, columns = split(Block(1 + 7 * number, text.encode()))
        cuts = scrapes.declare(comments)
        assert cuts == [[], [8], [15, 22]][number]
        tables += list(scrapes.take(*samples_of(columns, known_series.code_of_text, report.skip), cuts))
    [table] = [*tables, *scrapes.end()]
    times = [number * 10**9 for number in (1789999990, 1789999991, 1789999992)]
    assert [row["ts_ns"] for row in table.to_pylist() if row["name"] == "y"] == times


def test_scrapes_that_end_in_eof_are_distinguished(tmp_path: Path) -> None:
    text = "".join(f"# TYPE x gauge\nx {n}\nnode_time_seconds 178999999{n}\n# EOF\n" for n in range(4))
    sets, _ = read(written(tmp_path, text))
    rows = [(row["ts_ns"] // 10**9 - 1789999990, row["value"]) for row in sets["series"] if row["name"] == "x"]
    assert rows == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0)]


def test_comments_without_words_declare_nothing(tmp_path: Path) -> None:
    text = "# TYPE a gauge\na 5\n#DEBUG\n#aTYPE\n# UNIT\n# TYPE b\nb 6\n"
    sets, report = read(written(tmp_path, text))
    assert [name for name, *_ in series(sets)] == ["a", "b"]
    assert report.skipped == 0


def test_times_may_be_seconds_or_milliseconds(tmp_path: Path) -> None:
    text = 'a{x="1"} 1 1789999999.123\na{x="2"} 2 1789999999123\n'
    sets, _ = read(written(tmp_path, text))
    assert [row["ts_ns"] for row in sets["series"]] == [1789999999123000000] * 2


def test_other_ways_to_write_a_sample_are_read(tmp_path: Path) -> None:
    lines = (
        'a{x="1",} 1',
        'a { x = "2" } \t 2',
        'a{x="3"}3',
        '{"a",x="4"} 4',
        '{"a.b","x-y"="5"} 5',
        'a{x="",y="6"} 6',
    )
    sets, report = read(written(tmp_path, "\r\n".join([*lines, "b +1.5e+1", "c .5"]) + "\r\n"))
    assert [(name, labels, value) for name, labels, value, _, _ in series(sets)] == [
        ("a", '{"x":"1"}', 1),
        ("a", '{"x":"2"}', 2),
        ("a", '{"x":"3"}', 3),
        ("a", '{"x":"4"}', 4),
        ("a.b", '{"x-y":"5"}', 5),
        ("a", '{"y":"6"}', 6),
        ("b", "{}", 15),
        ("c", "{}", 0.5),
    ]
    assert report.skipped == 0


def test_what_is_no_sample_is_skipped_with_its_line_and_reason(tmp_path: Path) -> None:
    form = 'expected NAME{LABEL="VALUE",...} VALUE [TIME]'
    time = "is neither seconds nor milliseconds of 2001 to 2261"
    bad = (
        ("a 1,5", "value '1,5' is no number"),
        ("a", form),
        ("a{x=1} 1", form),
        ('a{x="1} 1', form),
        ('a{x="1",x="2"} 1', "label 'x' is repeated, or more than 100 labels"),
        ('{x="1"} 1', "a series without a name, or with two"),
        ("a 1 12", f"time '12' {time}"),
        ("a 1 -1789999999", f"time '-1789999999' {time}"),
        ("a 1 yesterday", f"time 'yesterday' {time}"),
        ("9a 1", form),
        ("a1", form),
        ("a 1_000", "value '1_000' is no number"),
    )
    text = 'b{x="1"} 1\n' + "".join(f"{line}\n" for line, _ in bad) + "c 2\n"
    sets, report = read(written(tmp_path, text))
    assert [row["value"] for row in sets["series"]] == [1.0, 2.0]
    reasons = {skipped.line: skipped.reason for skipped in report.quoted}
    assert reasons == {number: reason for number, (_, reason) in enumerate(bad, 2)}


def test_a_time_in_the_future_is_left_out_and_reported(tmp_path: Path) -> None:
    with Store.open(tmp_path / "home") as store:
        loaded = Loaded()
        path = written(tmp_path, 'b{x="1"} 1 9100000000\nb{x="2"} 2 1789999999\n')
        load_file(store, path, PrometheusReader(), loaded, context=Context("test"))
        assert "before 1970 or from the future" in loaded.reports[0].quoted[0].reason
        assert store.lake.frame("select value from series")["value"].tolist() == [2.0]


def test_a_value_that_our_column_cannot_hold_exactly_stays_in_series(tmp_path: Path) -> None:
    text = "# TYPE node_memory_MemTotal_bytes gauge\nnode_memory_MemTotal_bytes 1025\nnode_memory_MemFree_bytes 2048\n"
    sets, _ = read(written(tmp_path, text))
    assert [plain(row) for row in sets["memory"]] == [{"node": "n1", "device": "node", "free_bytes": 2}]
    assert series(sets) == [("node_memory_MemTotal_bytes", "{}", 1025.0, "gauge", None)]


def test_fields_of_dcgm_that_are_nvmls_are_next_to_our_own(tmp_path: Path) -> None:
    labels = 'gpu="0",UUID="GPU-1",device="nvidia0",modelName="H200",Hostname="g07"'
    text = (
        "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\n"
        f"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{labels}}} 8639\n"
        f"DCGM_FI_DEV_SM_CLOCK{{{labels}}} 1980\n"
        f'DCGM_FI_DEV_SM_CLOCK{{{labels},pod="train-0"}} 1980\n'
        f"DCGM_FI_DEV_FB_USED{{{labels}}} 17\n"
    )
    sets, _ = read(written(tmp_path, text))
    [row] = sets["gpu"]
    assert plain(row) == {"node": "g07", "device": "GPU-1", "energy_joules_total": 8639, "sm_clock_hertz": 1980}
    assert [name for name, *_ in series(sets)] == ["DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_FB_USED"]


def test_a_host_name_with_a_path_is_none(tmp_path: Path) -> None:
    hosts = ("../etc:1", "n2:9100", "[fe80::1]:9100", "https://a/b", "n3")
    text = "".join(f'up{{instance="{host}"}} 1 1789999999\n' for host in hosts)
    sets, _ = read(written(tmp_path, text))
    assert [row["node"] for row in sets["series"]] == ["n1", "n2", "fe80::1", "n1", "n3"]


def test_a_file_that_grew_gives_what_is_new_once(tmp_path: Path) -> None:
    scrape = "# TYPE node_load1 gauge\nnode_load1 {0}\n# TYPE x gauge\nx {0}\nnode_time_seconds 178999990{0}\n"
    with Store.open(tmp_path / "home") as store:
        loaded = Loaded()
        for count in (1, 3, 3):
            path = written(tmp_path, "".join(scrape.format(number) for number in range(count)) + "# EOF\n")
            load_file(store, path, PrometheusReader(), loaded, context=Context("test", node="n1"))
        assert (loaded.batches, loaded.duplicates, loaded.rows) == (2, 1, 9)
        frame = store.lake.frame("select load1 from cpu order by ts_ns")
        assert frame["load1"].tolist() == [0.0, 1.0, 2.0]
        frame = store.lake.frame("select value from series where name = 'x' order by ts_ns")
        assert frame["value"].tolist() == [0.0, 1.0, 2.0]


def loaded_rows(home: Path, *texts: str) -> dict[str, list[str]]:
    """Return what stands in the store after a file was ingested, and again each time when it had grown."""
    with Store.open(home) as store:
        for text in texts:
            path = written(home, text)
            load_file(store, path, PrometheusReader(), Loaded(), context=Context("test", node="n1"))
        return {
            name: sorted(map(str, store.lake.frame(f"select * from {name}").to_dict("records")))
            for name in store.lake.sets()
        }


@pytest.mark.thorough
def test_a_scrape_that_is_read_while_it_is_written_is_stored_as_if_it_had_been_whole(tmp_path: Path) -> None:
    first, second = (
        f"# HELP node_load1 Load.\n# TYPE node_load1 gauge\nnode_load1 {n}\n# TYPE node_load5 gauge\nnode_load5 {n}\n"
        f"# TYPE x gauge\nx {n}\n# TYPE node_time_seconds gauge\nnode_time_seconds 178999990{n}\n"
        f"# TYPE z gauge\nz {n}\n"
        for n in (1, 2)
    )
    whole = f"{first}{second}# EOF\n"
    expected = loaded_rows(tmp_path / "whole", whole)
    assert [len(rows) for _, rows in sorted(expected.items())] == [2, 6]
    lines = second.splitlines(keepends=True)
    for count in range(len(lines) + 1):
        cut = first + "".join(lines[:count])
        assert loaded_rows(tmp_path / str(count), cut, whole) == expected, count


def test_a_last_scrape_that_nothing_ends_waits_and_the_report_says_what_to_do(tmp_path: Path) -> None:
    scrape = "# TYPE x gauge\nx {0}\nnode_time_seconds 178999990{0}\n"
    sets, report = read(written(tmp_path, scrape.format(1) + scrape.format(2)))
    assert [row["value"] for row in sets["series"] if row["name"] == "x"] == [1.0]
    assert report.notes == [
        "the last scrape, of 2 samples so far, waits: it may still be written; ingest the file again when another "
        "follows it, or end it with a line `# EOF`"
    ]


def test_a_series_of_very_long_labels_is_skipped(tmp_path: Path) -> None:
    sets, report = read(written(tmp_path, f'a{{x="{"y" * 20_000}"}} 1\nb{{x="y"}} 2\n'))
    assert [row["value"] for row in sets["series"]] == [2.0]
    assert [skipped.reason for skipped in report.quoted] == ["a series of 20007 characters; expected at most 16384"]
