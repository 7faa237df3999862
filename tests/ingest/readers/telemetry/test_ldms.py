"""Stores of LDMS.

Recorded procdiskstats and procnetdev are the example in the manual of LDMS's set groups; meminfo and procstat
were made from /proc of a Linux machine, in the form that store_csv.c, meminfo.c and procstat.c of LDMS write.
"""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.lake.lake import set_of
from crosswind.data.schema.errors import MalformedError
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import Loaded
from crosswind.ingest.load.load_file import load_file
from crosswind.ingest.reader.lines import head_of
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.telemetry.ldms import LdmsReader

RECORDED = RECORDINGS / "ldms"
HEADER = "#Time,Time_usec,ProducerName,component_id,speed\n"
ROW = "1763762400.000250,250,n1,1,7\n"


def read(path: Path, node: str = "") -> tuple[dict[str, list[dict[str, Any]]], Report]:
    """The rows of each set, without what is missing in them."""
    report = Report(str(path), "ldms")
    rows: dict[str, list[dict[str, Any]]] = {}
    for table in LdmsReader().read(path, report, Context("lab", node=node)):
        filled = [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]
        rows.setdefault(set_of(table.schema).name, []).extend(filled)
    return rows, report


def speeds(path: Path) -> tuple[list[float | None], list[tuple[int, str]]]:
    """The column of these tests, and what was skipped."""
    rows, report = read(path)
    return [row.get("speed") for row in rows["ldms_fans"]], [
        (skipped.line, skipped.reason) for skipped in report.quoted
    ]


@pytest.fixture
def fans(tmp_path: Path) -> Path:
    return tmp_path / "fans"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def load(store: Store, path: Path) -> Loaded:
    loaded = Loaded()
    load_file(store, path, LdmsReader(), loaded, context=Context("lab"))
    return loaded


def test_meminfo_becomes_memory_and_the_rest_its_own_set() -> None:
    rows, report = read(RECORDED / "meminfo.1763762400")
    assert [(row["ts_ns"], row["node"]) for row in rows["memory"]] == [
        (1763762400_001100_000, "n1"),
        (1763762401_001103_000, "n2"),
        (1763762402_001106_000, "n1"),
    ]
    assert {
        name: rows["memory"][0][name] for name in ("device", "total_bytes", "available_bytes", "huge_page_bytes")
    } == {
        "device": "node",
        "total_bytes": 24684084,  # kB, of which the set's scale makes bytes
        "available_bytes": 22746776,
        "huge_page_bytes": 2048,
    }
    assert [row["job_id"] for row in rows["ldms_meminfo"]] == [0, 4711, 4711]
    assert rows["ldms_meminfo"][0]["active_anon"] == 1624
    assert (report.read, report.skipped, report.notes) == (6, 0, [])  # rows, not lines


def test_bytes_in_the_lake_are_bytes(store: Store) -> None:
    load(store, RECORDED / "meminfo.1763762400")
    frame = store.lake.frame("select distinct total_bytes from memory")
    assert frame["total_bytes"].tolist() == [24684084 * 1024]


def test_vmstat_becomes_memory_too(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "vmstat"
    path.write_text(
        "#Time,Time_usec,ProducerName,component_id,nr_free_pages,pgpgin,pgfault,workingset_refault_file,pgalloc_normal\n"
        "1763762400.000250,250,n1,1,5514715,700,80,9,6\n"
    )
    rows, _ = read(path)
    assert rows["memory"] == [
        {
            "ts_ns": 1763762400_000250_000,
            "node": "n1",
            "device": "node",
            "paged_in_bytes_total": 700,
            "page_faults_total": 80,
            "refaulted_file_pages_total": 9,
        }
    ]
    assert [(row["nr_free_pages"], row["pgalloc_normal"]) for row in rows["ldms_vmstat"]] == [(5514715, 6)]
    load(store, path)
    assert store.lake.frame("select paged_in_bytes_total as b from memory")["b"].tolist() == [700 * 1024]


def test_procstat_becomes_all_and_each_core_that_is_up() -> None:
    rows, report = read(RECORDED / "procstat")
    assert [(row["device"], row["user_seconds_total"], row["softirq_seconds_total"]) for row in rows["cpu"]] == [
        ("all", 99477, 345),
        ("cpu0", 48615, 107),
        ("cpu1", 50862, 237),  # cores 2 and 3 are not enabled
    ]
    assert rows["cpu"][0]["forks_total"] == 8853
    assert report.notes == [
        "processor times are taken for ticks of 1/100 s, as on all Linux but alpha; sc_clk_tck=1 would show"
    ]


def test_ticks_of_another_length_stay_out_of_our_set(tmp_path: Path) -> None:
    path = tmp_path / "procstat"
    header, row = (RECORDED / "procstat").read_text().splitlines()
    path.write_text(f"{header},sc_clk_tck\n{row},1024\n")
    rows, report = read(path)
    assert list(rows) == ["ldms_procstat"]
    assert rows["ldms_procstat"][0]["user"] == 99477
    assert report.notes == ["processor times are not in ticks of 1/100 s: they are in the schema's own set alone"]
    path.write_text(f"{header},sc_clk_tck\n{row},100\n")
    rows, report = read(path)
    assert [row["device"] for row in rows["cpu"]] == ["all", "cpu0", "cpu1"]
    assert report.notes == []


def test_devices_in_names_of_columns_become_rows() -> None:
    rows, report = read(RECORDED / "procnetdev")
    first = rows["network"][0]
    assert (first["device"], first["node"], first["receive_bytes_total"], first["transmit_packets_total"]) == (
        "lo",
        "s0",
        12328527,
        100865,
    )
    assert rows["ldms_procnetdev"][2]["rx_multicast_lo"] == 12898
    assert [note.split(":")[0] for note in report.notes] == ["columns name devices, and 2 nodes share them"]
    rows, _ = read(RECORDED / "procdiskstats")
    assert rows["disk"][1]["read_bytes_total"] == 1143802  # sectors of 512 bytes
    assert rows["disk"][1]["busy_seconds_total"] == 54012  # ms


def test_an_interface_that_is_not_there_is_missing_rather_than_idle(tmp_path: Path) -> None:
    path = tmp_path / "procnetdev"
    header, first = (RECORDED / "procnetdev").read_text().splitlines()[:2]
    names, cells = header.split(",")[6:], first.split(",")
    absent = [name.replace("#lo", "#ib0") for name in names]
    path.write_text(f"{header},{','.join(absent)}\n{first}{',0' * 16}\n{','.join(cells[:6])}{',0' * 16}{',5' * 16}\n")
    rows, _ = read(path)
    assert [(row["device"], row["receive_bytes_total"]) for row in rows["network"]] == [("lo", 12328527), ("ib0", 5)]


def test_lists_of_interfaces_become_rows(tmp_path: Path) -> None:
    fields = "name,rx_bytes,rx_packets,rx_errs,rx_drop,rx_fifo,rx_frame,rx_compressed,rx_multicast,tx_bytes,tx_packets"
    fields += ",tx_errs,tx_drop,tx_fifo,tx_colls,tx_carrier,tx_compressed"
    names = ",".join(f"netdev_list_{field}" for field in fields.split(","))
    path = tmp_path / "procnetdev2"
    time = "1763762400.000250,250,n1,1,0,0"
    path.write_text(
        f"#Time,Time_usec,ProducerName,component_id,job_id,app_id,netdev_list_entry_idx,{names}\n"
        f"{time},0,lo,{','.join(map(str, range(16)))}\n{time},1,eth0,{','.join(map(str, range(100, 116)))}\n"
    )
    rows, _ = read(path)
    assert [(row["device"], row["receive_bytes_total"], row["transmit_bytes_total"]) for row in rows["network"]] == [
        ("lo", 0, 8),
        ("eth0", 100, 108),
    ]
    assert [(row["device"], row["netdev_list_tx_colls"]) for row in rows["ldms_procnetdev2"]] == [("0", 13), ("1", 113)]


def test_the_header_may_be_next_to_the_file(tmp_path: Path) -> None:
    rolled, packed = tmp_path / "fans.1763762400", tmp_path / "pumps.gz"
    rolled.write_text(ROW)
    packed.write_bytes(gzip.compress(ROW.encode()))
    assert not LdmsReader().recognises(rolled, head_of(rolled))
    with pytest.raises(MalformedError, match="no header; expected a line such as #Time,Time_usec,ProducerName"):
        read(rolled)
    (tmp_path / "fans.HEADER.1763762400").write_text(HEADER)
    (tmp_path / "pumps.HEADER").write_text(HEADER)
    for path, name in ((rolled, "ldms_fans"), (packed, "ldms_pumps")):
        assert LdmsReader().recognises(path, head_of(path))
        assert read(path)[0][name] == [
            {"ts_ns": 1763762400_000250_000, "node": "n1", "device": "", "component_id": 1, "speed": 7}
        ]


def test_files_of_headers_and_of_types_hold_no_rows(tmp_path: Path) -> None:
    header, kinds = tmp_path / "fans.HEADER", tmp_path / "fans.KIND"
    header.write_text(HEADER)
    kinds.write_text("#!ldms-kinds!timestamp,u64,char[]64,u64,d64\n")
    for path in (header, kinds):
        assert LdmsReader().recognises(path, head_of(path))
        assert read(path)[0] == {}
        assert read(path)[1].skipped == 0


def test_spaces_quotes_milliseconds_and_user_data_are_understood(fans: Path) -> None:
    fans.write_text("#Time, Time_usec, ProducerName, speed\n1763762400.000250, 250, n1, 7\n")
    assert read(fans)[0]["ldms_fans"] == [{"ts_ns": 1763762400_000250_000, "node": "n1", "device": "", "speed": 7}]
    fans.write_text('#"Time_msec","Time_usec","ProducerName","speed"\n1763762400001,250,"n1","7"\n')
    assert read(fans)[0]["ldms_fans"] == [{"ts_ns": 1763762400_001250_000, "node": "n1", "device": "", "speed": 7}]
    fans.write_text("#Time,Time_usec,ProducerName,speed.userdata,speed.value\n1763762400.000250,250,n1,42,7\n")
    assert read(fans)[0]["ldms_fans"][0] == {
        "ts_ns": 1763762400_000250_000,
        "node": "n1",
        "device": "",
        "speed_userdata": 42,
        "speed": 7,
    }


def test_columns_may_stand_in_any_order(fans: Path) -> None:
    fans.write_text("#speed,ProducerName,Time\n7,n1,1763762400.000250\n")
    assert read(fans)[0]["ldms_fans"] == [{"ts_ns": 1763762400_000250_000, "node": "n1", "device": "", "speed": 7}]


def test_a_store_that_was_opened_again_writes_its_header_again_and_may_have_other_columns(fans: Path) -> None:
    other = "#Time,Time_usec,ProducerName,speed,noise\n"
    fans.write_text(f"{HEADER}{ROW}{HEADER}{ROW}{other}1763762401.000250,250,n1,8,3\n")
    rows, report = read(fans)
    assert [(row.get("speed"), row.get("noise"), row.get("component_id")) for row in rows["ldms_fans"]] == [
        (7, None, 1),
        (7, None, 1),
        (8, 3, None),
    ]
    assert report.notes == ["1 headers that say other columns than those before"]


def test_what_is_no_number_is_kept_as_text_and_missing_as_number(fans: Path) -> None:
    fans.write_text(
        f"{HEADER}{ROW}1763762401.000250,250,n1,1,fast\n1763762402.000250,250,n1,1,nan\n"
        "1763762403.000250,250,n1,1,9007199254740993\n1763762404.000250,250,n1,1,-1.5e3\n1763762405.0,0,n1,1,inf\n"
    )
    rows, report = read(fans)
    assert [(row.get("speed"), row.get("texts")) for row in rows["ldms_fans"]] == [
        (7, None),
        (None, '{"speed": "fast"}'),
        (None, None),
        (9007199254740992, '{"speed": "9007199254740993"}'),
        (-1500, None),
        (None, '{"speed": "inf"}'),
    ]
    assert report.skipped == 0


def test_a_damaged_cell_of_ours_is_missing_there(tmp_path: Path) -> None:
    path = tmp_path / "meminfo"
    content = (RECORDED / "meminfo.1763762400").read_text()
    path.write_text(content.replace(",24684084,", ",246x4084,", 1))
    rows, _ = read(path)
    assert [row.get("total_bytes") for row in rows["memory"]] == [None, 24684084, 24684084]
    assert rows["ldms_meminfo"][0]["texts"] == '{"MemTotal": "246x4084"}'


def test_bad_rows_are_quoted_with_their_lines(fans: Path) -> None:
    bad = (
        "1763762400.000250,250,n1,1\n"  # cut short
        "1763762400.000250,250,n1,1,7,5\n"  # a comma for the decimal point
        "\n"
        "12.5,0,n1,1,7\n"  # of 1970
        "soon,0,n1,1,7\n"
        "1763762400.000250,250,../../etc,1,7\n"
        "1763762400.000250,250,,1,7\n"
        '1763762400.000250,250,"n1,1,7\n'
        "# by hand\n"
    )
    fans.write_text(f"{HEADER}{ROW}{bad}{ROW.replace(',7', ',8')}1763762401.0,0,n1,1,9")
    values, skipped = speeds(fans)
    assert values == [7, 8]
    assert sorted(skipped) == [
        (3, "4 fields; expected 5"),
        (4, "6 fields; expected 5"),
        (6, "Time is no time between 2001 and 2262"),
        (7, "Time is no time between 2001 and 2262"),
        (8, "ProducerName is no host name; where it is empty, say --node"),
        (9, "ProducerName is no host name; where it is empty, say --node"),
        (10, "a quotation does not end in its line"),
        (11, "a comment, which LDMS does not write"),
        (13, "the last line has no line end: it may be cut short; end it, or ingest the file again when it grew"),
    ]


def test_a_blank_cell_is_missing(fans: Path) -> None:
    fans.write_text(f"{HEADER}1763762400.0,0,n1, ,\t\n  \n{ROW}")
    values, skipped = speeds(fans)
    assert values == [None, 7]
    assert skipped == [(3, "1 fields; expected 5")]


def test_rows_in_front_of_any_header_are_refused_and_those_behind_are_read(fans: Path) -> None:
    fans.write_text(f"{ROW}{ROW}{HEADER}{ROW}")
    values, skipped = speeds(fans)
    assert values == [7]
    assert [(line, reason.split(";")[0]) for line, reason in skipped] == [
        (1, "a row in front of any header"),
        (2, "a row in front of any header"),
    ]


def test_the_caller_may_name_the_node_of_rows_that_name_none(fans: Path) -> None:
    fans.write_text(HEADER + ROW.replace("n1", ""))
    assert [row["node"] for row in read(fans, node="n9")[0]["ldms_fans"]] == ["n9"]


def test_names_that_fall_together_are_distinguished(fans: Path) -> None:
    fans.write_text(
        "#Time,Time_usec,ProducerName,Active(anon),active_anon,node,class,a,a\n1763762400.0,0,n1,1,2,3,4,5,6\n"
    )
    [row] = read(fans)[0]["ldms_fans"]
    assert sorted(value for name, value in row.items() if name not in ("ts_ns", "node", "device")) == [1, 2, 3, 4, 5, 6]
    assert (row["node"], row["class"], row["a"]) == ("n1", 4, 5)


def test_more_columns_than_a_set_holds_become_several(fans: Path) -> None:
    names = [f"c{number}" for number in range(2500)]
    fans.write_text(
        f"#Time,Time_usec,ProducerName,{','.join(names)}\n1763762400.0,0,n1,{','.join(map(str, range(2500)))}\n"
    )
    rows, _ = read(fans)
    assert list(rows) == ["ldms_fans", "ldms_fans_2", "ldms_fans_3"]
    assert {name: value for table in rows.values() for name, value in table[0].items() if name in names} == {
        name: number for number, name in enumerate(names)
    }


def test_a_header_of_countless_columns_is_refused(fans: Path) -> None:
    fans.write_text(f"#Time,Time_usec,ProducerName,{','.join(f'c{number}' for number in range(20_001))}\n")
    with pytest.raises(MalformedError, match="schema 'fans': 20001 columns in its headers; expected 20000 at most"):
        read(fans)


def test_columns_keep_their_type_whatever_a_file_holds(store: Store, fans: Path, tmp_path: Path) -> None:
    texts = ("7", "7.5", "fast", "18446744073709551615")
    for number, text in enumerate(texts):
        path = tmp_path / f"fans.{1763762400 + number}"
        path.write_text(HEADER + f"{1763762400 + number}.0,0,n1,1,{text}\n")
        assert load(store, path).rows == 1
    frame = store.lake.frame("select speed, texts from ldms_fans order by ts_ns")
    assert frame["speed"].fillna(-1).tolist() == [7, 7.5, -1, 18446744073709551616]


def test_a_file_that_grows_gives_only_what_is_new(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "procstat"
    header, row = (RECORDED / "procstat").read_text().splitlines()
    path.write_text(f"{header}\n{row}\n")
    assert load(store, path).rows == 4
    path.write_text(f"{header}\n{row}\n{row.replace('1763762400', '1763762401')}\n")
    assert load(store, path).rows == 4
    assert load(store, path).rows == 0
    frame = store.lake.frame("select device, count(*) as n from cpu group by all order by all")
    assert list(map(tuple, frame.to_numpy())) == [("all", 2), ("cpu0", 2), ("cpu1", 2)]


def test_order_of_rows_does_not_depend_on_how_much_is_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "procstat"
    header, row = (RECORDED / "procstat").read_text().splitlines()
    path.write_text(
        "\n".join([header, *(row.replace("1763762400", str(1763762400 + second)) for second in range(3)), ""])
    )
    tables = list(LdmsReader().read(path, Report("", ""), Context("lab")))
    path.write_text(
        "\n".join([header, *(row.replace("1763762400", str(1763762400 + second)) for second in range(4)), ""])
    )
    grown = list(LdmsReader().read(path, Report("", ""), Context("lab")))
    assert [
        pa.Table.equals(after.slice(0, len(before)), before) for before, after in zip(tables, grown, strict=True)
    ] == [
        True,
        True,
    ]
