"""TensorBoard's event files. Recorded: torch.utils.tensorboard of PyTorch 2.13, and tf.summary of TensorFlow 2.21."""

import struct
import time
from pathlib import Path

import pyarrow as pa
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.run import Run, RunState
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.trackers.tensorboard import TensorBoardReader
from crosswind.ingest.readers.trackers.tfrecord import crc32c, masked

RECORDED = RECORDINGS / "tensorboard"
SCALARS = RECORDED / "events.out.tfevents.1795298762.vm.27376.0"
HYPERPARAMETERS = RECORDED / "events.out.tfevents.1795298762.vm.27376.1"
TENSORFLOW = RECORDED / "events.out.tfevents.1795301440.vm.10836.0.v2"
Row = tuple[int, str, float | None]


def read(path: Path) -> tuple[list[Row], list[Run], Report]:
    report = Report(str(path), "tensorboard")
    records = list(TensorBoardReader().read(path, report, Context("lab", workload="resnet")))
    rows = [row for entry in records if isinstance(entry, pa.Table) for row in entry.to_pylist()]
    runs = [entry for entry in records if isinstance(entry, Run)]
    return [(row["step"], row["name"], row["value"]) for row in rows], runs, report


def record(data: bytes) -> bytes:
    header = struct.pack("<Q", len(data))
    return header + struct.pack("<I", masked(header)) + data + struct.pack("<I", masked(data))


def field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2, len(data)]) + data


def event(value: bytes, *, step: int = 7, seconds: float = 1.75e9) -> bytes:
    return record(b"\x09" + struct.pack("<d", seconds) + bytes([0x10, step]) + field(5, field(1, value)))


def written(tmp_path: Path, *records: bytes) -> Path:
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(b"".join(records))
    return path


def test_scalars_of_both_styles_are_progress_and_what_is_not_finite_is_null() -> None:
    rows, [run], report = read(SCALARS)
    assert rows == [
        (0, "loss/train", 2.0),
        (0, "throughput", 100.0),
        (1, "loss/train", 1.0),
        (1, "throughput", 101.0),
        (2, "loss/train", 0.6666666865348816),
        (2, "throughput", 102.0),
        (3, "loss/train", 0.5),
        (3, "throughput", 103.0),
        (4, "loss/train", None),
    ]
    assert (run.workload, run.state, run.world_size) == ("resnet", RunState.LOST, None)
    assert (run.started_ns, run.ended_ns) == (1795298762009530112, 1795298762031497728)
    assert (report.read, report.skipped) == (10, 0)
    assert report.notes == ["2 texts, images, histograms and tensors are no scalars: left out"]


def test_hyperparameters_are_the_configuration_and_a_session_that_ended_well_is_complete() -> None:
    rows, [run], _ = read(HYPERPARAMETERS)
    assert rows == [(0, "hparam/accuracy", 0.8999999761581421)]
    assert run.configuration == {"lr": 0.1, "bsize": 32.0, "amp": 1.0, "opt": "sgd"}
    assert run.state is RunState.COMPLETED


def test_tensorflows_tensors_of_one_number_are_scalars() -> None:
    rows, [run], report = read(TENSORFLOW)
    assert rows == [
        (0, "loss", 1.5),
        (0, "count", 0.0),
        (1, "loss", 0.75),
        (1, "count", 10.0),
        (2, "loss", 0.5),
        (2, "count", 20.0),
    ]
    assert run.tags == {"imported_from": "tensorboard", "folder": "tensorboard"}
    assert report.notes == ["2 texts, images, histograms and tensors are no scalars: left out"]


def test_a_file_that_is_still_written_gives_what_is_whole_and_later_the_rest(tmp_path: Path) -> None:
    path = tmp_path / SCALARS.name
    path.write_bytes(SCALARS.read_bytes()[:-5])
    assert read(path)[2].quoted[0].reason == "record 12 is cut short: its file may still be written"
    path.write_bytes(SCALARS.read_bytes()[:400])
    rows, [run], report = read(path)
    whole, [same], _ = read(SCALARS)
    assert 0 < len(rows) < len(whole)
    assert rows == whole[: len(rows)]
    assert run.run_id == same.run_id
    assert report.skipped == 1


def test_a_damaged_record_is_left_out_and_the_others_are_read(tmp_path: Path) -> None:
    good, bad = event(field(1, b"loss") + b"\x15\0\0\0\x40"), bytearray(event(field(1, b"loss") + b"\x15\0\0\0\x40"))
    bad[-6] ^= 1
    rows, _, report = read(written(tmp_path, good, bytes(bad), good))
    assert rows == [(7, "loss", 2.0)] * 2
    assert [(skipped.line, skipped.reason) for skipped in report.quoted] == [(2, "record 2 does not have its checksum")]


def test_after_a_damaged_header_nothing_is_believed(tmp_path: Path) -> None:
    good = event(field(1, b"loss") + b"\x15\0\0\0\x40")
    rows, _, report = read(written(tmp_path, good, b"\xff" + good[1:], good))
    assert rows == [(7, "loss", 2.0)]
    assert report.quoted[0].reason == "record 2 has no valid header: nothing after it can be read"


def test_a_length_beyond_all_memory_is_skipped_over_not_read(tmp_path: Path) -> None:
    header = struct.pack("<Q", 1 << 60)
    huge = header + struct.pack("<I", masked(header)) + b"x" * 100
    _, runs, report = read(written(tmp_path, huge))
    assert runs == []
    assert report.quoted[0].reason == "record 1 is cut short: its file may still be written"
    assert "holds no scalars: no run" in report.notes


def test_tensors_of_one_whole_number_are_scalars(tmp_path: Path) -> None:
    packed = field(8, b"\x08\x09" + field(2, b"") + field(10, b"\xac\x02"))  # DT_INT64, no dimensions, [300]
    content = field(8, b"\x08\x02" + field(2, b"") + field(4, struct.pack("<d", 0.25)))  # DT_DOUBLE
    vector = field(8, b"\x08\x01" + field(2, field(2, b"\x08\x02")) + field(4, bytes(8)))  # DT_FLOAT, two of them
    path = written(tmp_path, *(event(field(1, b"n") + tensor) for tensor in (packed, content, vector)))
    assert read(path)[0] == [(7, "n", 300.0), (7, "n", 0.25)]


def test_times_that_are_none_are_refused(tmp_path: Path) -> None:
    value = field(1, b"loss") + b"\x15\0\0\0\x40"
    rows, _, report = read(written(tmp_path, event(value, seconds=1e300), event(value, seconds=float("nan"))))
    assert rows == []
    assert report.quoted[0].reason == "record 1: time 0 ns of 'loss' is not between 2001 and 2262"
    assert report.skipped == 2


def test_the_checksum_is_castagnolis() -> None:
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, appendix B.4
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"\0" * 32 * 8 + bytes(range(256)) * 3 + b"123456789") == by_bits(
        b"\0" * 32 * 8 + bytes(range(256)) * 3 + b"123456789"
    )


def by_bits(data: bytes) -> int:
    """The checksum as it is defined, a bit after the other."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82F63B78 * (crc & 1)
    return crc ^ 0xFFFFFFFF


def test_checksums_of_images_take_no_longer_than_reading_them() -> None:
    image = bytes(range(256)) * 4096  # 1 MiB
    crc32c(image[:4096])
    turns = []
    for _ in range(5):  # a busy machine makes one turn slow, hardly five
        begun = time.process_time()
        crc32c(image)
        turns.append(time.process_time() - begun)
    assert min(turns) < 0.1  # byte by byte: 0.15 s, and more where this takes longer, too
