"""W&B's local records. Recorded: wandb 0.31.0, WANDB_MODE=offline; one of them with variables as Slurm sets
them; and wandb 0.16.6, whose records another program wrote.
"""

import zlib
from pathlib import Path

import pyarrow as pa
import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.lake.lake import set_of
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.facts import Facts
from crosswind.data.schema.run import Run, RunState
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.trackers.wandb_log import BEGINNING, HEADER
from crosswind.ingest.readers.trackers.wandb_run import WandbReader

RECORDED = RECORDINGS / "wandb/run-n0k6xmrm.wandb"
SAMPLED = RECORDED.with_name("run-poul1m45.wandb")
OLD = RECORDED.with_name("run-vtiazpac.wandb")


def read(path: Path) -> tuple[list[tuple[int, str, float | None]], list[Run], Report]:
    report = Report(str(path), "wandb")
    records = list(WandbReader().read(path, report, Context("lab")))
    tables = [record for record in records if isinstance(record, pa.Table) and set_of(record.schema).name == "progress"]
    rows = [row for table in tables for row in table.to_pylist()]
    runs = [record for record in records if isinstance(record, Run)]
    return [(row["step"], row["name"], row["value"]) for row in rows], runs, report


def fragment(kind: int, data: bytes) -> bytes:
    return HEADER.pack(zlib.crc32(data, zlib.crc32(bytes([kind]))), len(data), kind) + data


def field(number: int, data: bytes) -> bytes:
    key, length = number << 3 | 2, len(data)
    return varint(key) + varint(length) + data


def varint(value: int) -> bytes:
    return bytes([value & 127 | 128]) + varint(value >> 7) if value > 127 else bytes([value])


RUN = field(17, field(1, b"abc") + field(3, b"toy"))


def step(number: int, **values: str) -> bytes:
    history = {"_timestamp": "1750000000.5", **values}
    items = b"".join(field(1, field(1, name.encode()) + field(16, text.encode())) for name, text in history.items())
    return field(2, items + field(2, b"\x08" + varint(number)))


def written(tmp_path: Path, *fragments: bytes) -> Path:
    path = tmp_path / "run-abc.wandb"
    path.write_bytes(BEGINNING + b"".join(fragments))
    return path


def test_history_is_progress_and_config_the_configuration() -> None:
    rows, [run], report = read(RECORDED)
    assert sorted(rows, key=lambda row: row[:2]) == [
        (0, "eval.acc", 0.0),
        (0, "loss", 2.0),
        (1, "eval.acc", 0.1),
        (1, "loss", 1.0),
        (2, "eval.acc", 0.2),
        (2, "loss", 0.6666666666666666),
        (3, "eval.acc", 0.30000000000000004),
        (3, "loss", 0.5),
        (4, "eval.acc", 0.4),
        (4, "loss", 0.4),
        (5, "loss", None),
    ]
    assert (run.workload, run.state, run.exit_code) == ("nanogpt", RunState.COMPLETED, 0)
    assert run.configuration == {"lr": 0.1, "layers": 12, "opt.name": "adam", "opt.eps": 1e-08}
    assert run.tags == {
        "imported_from": "wandb",
        "imported_id": RECORDED.stem.removeprefix("run-"),
        "name": "calm-sea-1",
        "host": "vm",
        "tags": "first",
    }
    assert run.software == {"python": "3.11.7"}
    assert report.notes == ["5 texts, media and other values that are no numbers: left out"]


def test_system_metrics_are_series_of_the_host_under_their_own_names() -> None:
    report = Report(str(SAMPLED), "wandb")
    tables = [record for record in WandbReader().read(SAMPLED, report, Context("lab")) if isinstance(record, pa.Table)]
    [rows] = [table.to_pylist() for table in tables if set_of(table.schema).name == "series"]
    assert rows[0] == {
        "ts_ns": 1795301200038096306,
        "node": "vm",
        "device": "",
        "name": "network.sent",
        "labels": '{"wandb_run":"poul1m45"}',
        "value": 0.0,
        "kind": None,
        "unit": None,
    }
    assert [row["value"] for row in rows if row["name"] == "cpu"][:3] == [
        13.72549057006836,
        11.764705657958984,
        7.500000476837158,
    ]
    assert len({row["ts_ns"] for row in rows}) == 9
    assert (report.read, report.skipped) == (119, 0)


def test_records_of_2024_are_read_alike() -> None:
    rows, [run], report = read(OLD)
    assert rows == [
        (0, "loss", 1.0),
        (0, "eval.acc", 0.0),
        (1, "loss", 0.5),
        (1, "eval.acc", 1.0),
        (2, "loss", 0.3333333333333333),
        (2, "eval.acc", 2.0),
    ]
    assert (run.workload, run.state, run.exit_code) == ("old", RunState.FAILED, 1)
    assert run.configuration == {"lr": 0.1, "opt.name": "adam"}
    assert report.notes == ["3 texts, media and other values that are no numbers: left out"]  # histograms


def test_slurms_job_and_nodes_are_the_runs() -> None:
    _, [run], _ = read(SAMPLED)
    assert (run.job_id, run.nodes, run.world_size) == ("4711", ("n1", "n2"), None)


def test_the_host_is_facts_of_the_run(tmp_path: Path) -> None:
    assert read(SAMPLED)[1][0].facts == Facts(processor="Intel(R) Xeon(R) Processor")
    device = field(24, field(1, b"NVIDIA A100-SXM4-80GB") + b"\x10" + varint(80 << 30))
    first = field(26, field(2, b"CPython 3.12.1") + field(18, b"NVIDIA A100-SXM4-80GB") + b"\x98\x01\x02")
    second = field(26, device + device + field(25, b"12.4"))
    _, [run], _ = read(written(tmp_path, *(fragment(1, record) for record in (RUN, first, second))))
    assert run.facts == Facts(
        accelerator="NVIDIA A100-SXM4-80GB",
        accelerators_per_node=2,
        accelerator_memory_bytes=80 * 2**30,
        cuda="12.4",
    )


def test_devices_without_a_summary_are_counted_and_words_that_say_nothing_are_no_facts(tmp_path: Path) -> None:
    devices = b"".join(field(26, field(8, b"Instinct MI300X")) for _ in range(8))
    _, [run], _ = read(written(tmp_path, fragment(1, RUN), fragment(1, field(26, devices + field(25, b"unknown")))))
    assert run.facts == Facts(accelerator="Instinct MI300X", accelerators_per_node=8)
    endless = field(24, field(1, b"N/A") + b"\x10" + varint((1 << 63) - 1))
    _, [run], report = read(written(tmp_path, fragment(1, RUN), fragment(1, field(26, endless))))
    assert (run.facts, report.skipped) == (Facts(accelerators_per_node=1), 0)


def test_samples_that_are_no_numbers_are_left_out_and_times_that_are_none_refused(tmp_path: Path) -> None:
    def stats(seconds: int, **values: str) -> bytes:
        items = [field(3, field(1, name.encode()) + field(16, text.encode())) for name, text in values.items()]
        return fragment(1, field(7, field(2, b"\x08" + varint(seconds)) + b"".join(items)))

    good, bad = stats(1_750_000_000, cpu="0.5", odd="true", none="NaN"), stats(17, cpu="1")
    path = written(tmp_path, fragment(1, RUN), good, bad, stats(1_750_000_015, cpu="{"))
    report = Report(str(path), "wandb")
    [table, _] = WandbReader().read(path, report, Context("lab", node="n7"))
    assert isinstance(table, pa.Table)
    assert [(row["node"], row["name"], row["value"]) for row in table.to_pylist()] == [("n7", "cpu", 0.5)]
    assert [skipped.reason for skipped in report.quoted] == [
        "record 3: time 17000000000 ns of 'cpu' is not between 2001 and 2262",
        "record 4: 'cpu': no JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
    ]


def test_a_run_that_is_still_written_has_no_end_yet(tmp_path: Path) -> None:
    path = tmp_path / RECORDED.name
    path.write_bytes(RECORDED.read_bytes()[:1500])
    rows, [run], report = read(path)
    assert rows == read(RECORDED)[0][: len(rows)] != []
    assert run.run_id == read(RECORDED)[1][0].run_id
    assert (run.state, run.exit_code) == (RunState.LOST, None)
    assert "the file may still be written" in report.quoted[0].reason


def test_a_failed_run_has_failed(tmp_path: Path) -> None:
    path = written(tmp_path, fragment(1, RUN), fragment(1, step(3, loss="1.5")), fragment(1, field(18, b"\x08\x01")))
    rows, [run], _ = read(path)
    assert rows == [(3, "loss", 1.5)]
    assert (run.state, run.exit_code, run.ended_ns) == (RunState.FAILED, 1, 1_750_000_000_500_000_000)


def test_a_record_of_several_blocks_is_put_together(tmp_path: Path) -> None:
    data = step(1, note='"' + "x" * 70_000 + '"', loss="0.5")
    first = fragment(1, RUN)
    room = 32768 - len(BEGINNING) - len(first) - HEADER.size
    parts = [data[:room], data[room : room + 32761], data[room + 32761 :]]
    path = written(tmp_path, first, fragment(2, parts[0]), fragment(3, parts[1]), fragment(4, parts[2]))
    assert read(path)[0] == [(1, "loss", 0.5)]


def test_damage_costs_one_record(tmp_path: Path) -> None:
    bad = bytearray(fragment(1, step(2, loss="9")))
    bad[-1] ^= 1
    path = written(tmp_path, fragment(1, RUN), bytes(bad), fragment(1, step(3, loss="1.5")))
    rows, _, report = read(path)
    assert rows == [(3, "loss", 1.5)]
    assert [skipped.reason[:22] for skipped in report.quoted] == ["a record that ends at "]


def test_what_is_no_number_is_left_out(tmp_path: Path) -> None:
    image = '{"_type": "image-file", "size": 12}'
    logged = step(1, image=image, flag="true", eval='{"acc": 0.5}', big="1" + "0" * 400, loss="Infinity")
    rows, _, report = read(written(tmp_path, fragment(1, RUN), fragment(1, logged)))
    assert rows == [(1, "eval.acc", 0.5), (1, "big", None), (1, "loss", None)]
    assert report.notes == ["2 texts, media and other values that are no numbers: left out"]


def test_history_without_a_time_is_refused(tmp_path: Path) -> None:
    timeless = field(2, field(1, field(1, b"loss") + field(16, b"1")) + field(2, b""))
    _, _, report = read(written(tmp_path, fragment(1, RUN), fragment(1, timeless)))
    assert report.quoted[0].reason == "record 2: history without a step or a time: 0, None"


def test_where_the_record_of_the_run_is_lost_the_files_name_has_its_id(tmp_path: Path) -> None:
    history = fragment(1, step(1, loss="1"))
    rows, [run], _ = read(written(tmp_path, history))
    assert rows == [(1, "loss", 1.0)]
    assert (run.workload, run.run_id) == ("unknown", read(written(tmp_path, fragment(1, RUN), history))[1][0].run_id)


def test_a_file_that_no_longer_names_its_run_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, fragment(1, step(1, loss="1"))).rename(tmp_path / "x.wandb")
    with pytest.raises(MalformedError, match="no record has a run"):
        read(path)
