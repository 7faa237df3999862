"""Blocks read by columns give exactly what the same lines give one by one, whatever stands in them."""

import itertools
import random
from collections.abc import Iterator
from datetime import UTC

import pyarrow as pa
import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.ingest.reader.lines import Block
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.clock import Clock, zone_named
from crosswind.ingest.readers.slurm.sacct import COLUMNS
from crosswind.ingest.readers.slurm.sacct_blocks import BlockReading
from crosswind.ingest.readers.slurm.sacct_lines import Allocation, LineReading
from crosswind.ingest.readers.slurm.sacct_remarks import Remarks
from crosswind.ingest.readers.slurm.sacct_repeats import REMEMBERED, Remembered

RECORDED = RECORDINGS / "sacct"
NO_VALUE = "18446744073709551614"
EVERYTHING = 1 << 40
ODD = (
    "",
    "Unknown",
    "-5",
    "1e3",
    "007",
    "9" * 18,
    "9" * 19,
    "x" * 70,
    "a b",
    'say "hi"',
    "back\\slash",
    "a\tb",
    "späte ☃",
)
USUAL = {
    "State": ("COMPLETED", "FAILED", "CANCELLED by 1000", "RUNNING", "PENDING", 'FAILED by "x"', "TIMEOUT+"),
    "ExitCode": ("0:0", "1:0", "0:9", ""),
    "Submit": (
        "1795200000",
        "1795200001",
        "Unknown",
        "None",
        "",
        "2026-07-01T12:00:00",
        "2026-07-01T12:00:00+0545",
        "2026-02-30T12:00:00",
        "2026-02-03 12:00:00",
        "2026-01-01T24:00:00",
    ),
    "Start": ("1795200010", "1795200300", "2026-10-25T02:30:00", "2026-10-25T04:30:00", "Unknown"),
    "End": ("1795200100", "1795200200", "2026-10-25T05:30:00", "999", "99999999999"),
    "NodeList": ("n1", "n[1-3]", "n[1-2],gpu[07-10]-ib0", "None assigned", "", "n-1", "n[", "x[1-999999]"),
    "NNodes": ("1", "2", "3", "", "6"),
    "AllocNodes": ("1", "3"),
    "NCPUS": ("8", "16"),
    "AllocCPUS": ("8", "16"),
    "ElapsedRaw": ("60", "0", ""),
    "Elapsed": ("00:01:00", "1-00:00:00", "Unknown"),
    "MaxRSS": ("", "1024", "3408K", "2.5M", "900000P", "0"),
    "ConsumedEnergyRaw": ("", "0", NO_VALUE, "300", "310", "9" * 17),
    "User": ("ada", "bob", ""),
    "JobName": ("train", "a|b", "", "State|JobID", "State", 'q"q'),
    "Comment": ("", "fine", '{"a": 1}'),
    "AllocTRES": ("cpu=1,mem=2G", ""),
}
HEADERS = (
    COLUMNS,
    ("JobIDRaw", "User", "Submit", "Start", "End", "ElapsedRaw", "State", "ExitCode", "NNodes", "NodeList", "MaxRSS",
     "ConsumedEnergyRaw", "Comment", "JobName"),
    ("State", "JobID", "Elapsed", "AllocNodes", "NNodes", "AllocCPUS", "NodeList", "AllocTRES", "MaxRSS", ""),
    ("JobID", "JobIDRaw", "State", "ConsumedEnergyRaw", "Start", "MaxRSS"),
    ("JobID", "State"),
    ("JobID", "State", "steps"),
    ("JobID", "State", "User", "User"),
)  # fmt: skip
STEPS = ("batch", "extern", "0", "1", "2", "0", "00", "0+1", "interactive", "a b")


def lines_at_random(chance: random.Random, oddity: float) -> Iterator[str]:
    """An export as Slurm may write it, of which a share is odd."""
    columns: tuple[str, ...] = chance.choice(HEADERS)
    yield "|".join(columns)
    number = chance.randrange(1, 1000)
    for _ in range(chance.randrange(1, 60)):
        number += chance.choice((1, 1, 1, 1, 7, 0, -1))
        job = chance.choice((str(number), str(number), f"{number}_3", f"{number}+1", f"{number}_[4-9%2]"))
        steps = chance.sample(STEPS, chance.randrange(4)) if chance.random() < oddity else ("batch", "extern", "0", "1")
        for step in ("", *steps):
            if chance.random() < oddity:
                columns = chance.choice((columns, columns, chance.choice(HEADERS)))
                yield chance.choice(("", "   ", "broken", "1|2", "|".join(columns), "|" * len(columns), "x" * 50))
            yield line(columns, f"{job}.{step}" if step else job, chance, oddity)


def line(columns: tuple[str, ...], identifier: str, chance: random.Random, oddity: float) -> str:
    values = []
    for column in columns:
        usual = USUAL.get(column, ("",))
        values.append(identifier if column.startswith("JobID") else chance.choice(usual[: 1 + int(oddity * 99)]))
        if chance.random() < oddity / 5:
            values[-1] = chance.choice(ODD)
    return "|".join(values) + ("\r" if chance.random() < oddity else "")


def read(lines: list[str], sizes: list[int], zone: str, few_bytes: int) -> tuple[pa.Table, Report, list[str]]:
    report, clock = Report("export", "sacct"), Clock(zone_named(zone))
    reading = LineReading(report, "test", clock, lines[0].split("|"))
    remarks, place = Remarks(clock), 1
    blocks = BlockReading(reading, remarks, few_bytes)
    tables = []
    for size in [*sizes, len(lines)]:
        data = "".join(f"{text}\n" for text in lines[place : place + size]).encode()
        tables += blocks.tables(Block(place + 1, data))
        place += size
    tables += blocks.rest()
    rows = [row for table in tables for row in table.drop_columns("ts_ns").to_pylist()]
    return rows, report, remarks.notes(further_headers=reading.further_headers, steps=reading.steps)


@pytest.mark.parametrize("oddity", [0.0, 0.01, 0.05, 0.3])
@pytest.mark.parametrize("seeds", [range(12), pytest.param(range(12, 60), marks=pytest.mark.thorough)])
def test_columns_give_what_lines_give(seeds: range, oddity: float) -> None:
    for seed in seeds:
        chance = random.Random(seed)
        lines = list(lines_at_random(chance, oddity))
        sizes = [chance.randrange(1, 40) for _ in range(3)]
        zone = chance.choice(("UTC", "Europe/Berlin"))
        assert read(lines, sizes, zone, few_bytes=0) == read(lines, [], zone, few_bytes=EVERYTHING), f"seed {seed}"


@pytest.mark.parametrize("own_energy", ["", "0", "500"])
def test_any_three_steps_in_any_order_give_the_same_energy_and_memory(own_energy: str) -> None:
    lines = ["JobID|State|ConsumedEnergyRaw|MaxRSS"]
    for job, steps in enumerate(itertools.product(STEPS, repeat=3), 1):
        lines.append(f"{job}|COMPLETED|{own_energy}|")
        usage = zip(steps, (300, 320, 310), ("1K", "", "900"), strict=True)
        lines += [f"{job}.{step}|COMPLETED|{joules}|{rss}" for step, joules, rss in usage]
    assert read(lines, [], "UTC", few_bytes=0) == read(lines, [], "UTC", few_bytes=EVERYTHING)


class Counting(LineReading):
    """Counts the lines that it looks at."""

    looked_at = 0

    def take(self, number: int, text: str) -> Allocation | None:
        self.looked_at += 1
        return super().take(number, text)


def test_only_jobs_with_lines_that_are_not_as_expected_are_looked_at_line_by_line() -> None:
    lines = [f"{job}{step}|COMPLETED|{job % 3}" for job in range(100) for step in ("", ".batch", ".0")]
    lines[30] = "10|COMPLETED|one"  # of three lines
    report, clock = Report("export", "sacct"), Clock(UTC)
    reading = Counting(report, "test", clock, ["JobID", "State", "NNodes"])
    blocks = BlockReading(reading, Remarks(clock), few_bytes=0)
    [table] = blocks.tables(Block(2, "".join(f"{text}\n" for text in lines).encode()))
    assert len(table) == 98
    assert [skipped.line for skipped in report.quoted] == [32, 33, 34]
    assert reading.looked_at == 6  # with the job before, whose steps they could be
    [last] = blocks.rest()  # it could have gone on in another block
    assert last["job_id"].to_pylist() == ["99"]
    assert reading.looked_at == 6 + 3


@pytest.mark.parametrize("name", ["slurm-22.05.txt", "nasty.txt"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_real_exports_are_read_alike_in_blocks_of_any_size(name: str, size: int) -> None:
    lines = (RECORDED / name).read_text().split("\n")[:-1]
    assert read(lines, [size] * 40, "UTC", few_bytes=0) == read(lines, [], "UTC", few_bytes=EVERYTHING)


@pytest.mark.thorough
def test_job_ids_are_remembered_for_as_long_however_many_come_at_once() -> None:
    ids = [str(number % 150_000) for number in range(400_000)] + ["5", "5"]
    at_once, by_one = Remembered(), Remembered()
    assert at_once.repeats(ids) == sum(by_one.repeats([job_id]) for job_id in ids) > 2
    assert len(at_once.young) + len(at_once.old) < 2 * REMEMBERED


def ids_at_random(chance: random.Random) -> Iterator[list[str]]:
    """Ids as exports have them, some at a time: rising, some again at once, seldom anything else."""
    number = 1
    for _ in range(40):
        ids = []
        for _ in range(chance.choice((1, 3000, 20_000))):
            number += chance.random() < 0.99
            ids.append(str(number))
        if chance.random() < 0.15:
            ids.insert(0, chance.choice(("5", "05", "7_1", str(max(1, number - 90_000)))))
        yield ids


@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 12), marks=pytest.mark.thorough)])
def test_rising_ids_are_counted_as_the_same_ids_one_by_one(seeds: range) -> None:
    for seed in seeds:
        by_columns, by_texts = Remembered(), Remembered()
        for ids in ids_at_random(random.Random(seed)):
            assert by_columns.repeats_among(pa.chunked_array([ids], pa.string())) == by_texts.repeats(ids), (
                f"seed {seed}"
            )
            assert len(by_columns.rising) < 2 * REMEMBERED
